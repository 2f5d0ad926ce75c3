# SPDX-License-Identifier: MIT
"""``ftn_pytorch_train`` of a script in a process of its own, for ``load(..., background=.true.)``."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from ..kit.background import Background
from ..kit.background_process import Remote
from ..kit.publishing import Weights, parts_of


def of_runner(runner: Any) -> Background:
    """``ftn_pytorch_train`` of a script in a child, which publishes to the networks of the script here."""
    background = Background(lambda: None)
    shared: list[torch.Tensor] = []

    itself = weakref.ref(runner)  # who keeps this
    found: dict[str, Any] = {}

    def here() -> list[torch.Tensor]:
        alive = itself()
        # Looking for networks takes as long as all the rest of a call.
        if alive is not None and not (found and all(alive.value(name) is each for name, each in found.items())):
            found.clear()
            found.update(alive.networks())
        return parts_of(found.values())

    def share() -> list[torch.Tensor]:
        shared[:] = [each.detach().clone().share_memory_() for each in here()]
        return shared

    background.use(Remote(runner.source(), None, share), Weights(lambda: shared, here))
    return background
