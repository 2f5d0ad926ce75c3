# SPDX-License-Identifier: MIT
"""Halos of any width around the sub-domains of a decomposed model, differentiable: for networks that look around.

A CNN over sub-domains then has the outputs and the gradients of the CNN over the whole domain.
"""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {"Exchange": "exchange", "OverSubdomains": "network", "halo_width": "receptive_field"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_PLACES)
