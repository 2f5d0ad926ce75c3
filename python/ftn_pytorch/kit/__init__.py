# SPDX-License-Identifier: MIT
"""Parts that scripts which train inside a simulation have in common, each usable alone and without Fortran.

Each has ``state_dict`` and ``load_state_dict``, so checkpoints keep it where a script has it among its names. Nothing
here needs the library: ``from ftn_pytorch.kit import Replay`` works in any Python that has torch.
"""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "Normaliser": "normaliser",
    "Replay": "replay",
    "Log": "log",
    "Guard": "guard",
    "LearntRange": "learnt_range",
    "Background": "background",
    "Online": "online",
    "ReplayData": "replay_data",
    "NStep": "n_step",
    "Rollout": "rollout",
    "Average": "average",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    # Late: a script that only logs need not have torch.
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
