# SPDX-License-Identifier: MIT
"""One step of several environments side by side, as NStep and Rollout are given it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ..errors import FtnPytorchError
from ..values import as_tensor


class Transitions(NamedTuple):
    """``n`` environments: observations and actions (n, ...), the others (n,)."""

    observation: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    """Floating point."""
    next_observation: torch.Tensor
    """Of the same episode: that in which it has ended, where it has, and not the first one of the next."""
    terminated: torch.Tensor
    """bool: the episode is over, and nothing comes after."""
    truncated: torch.Tensor
    """bool: nobody has gone on, as at a time limit; there would have been more."""


def checked(part: str, *given: Any) -> Transitions:
    """The arguments of ``add`` in their order, ``truncated`` may be None. SHAPE if they do not fit."""
    observation, action, reward, following, terminated = [as_tensor(each).detach() for each in given[:5]]
    truncated = torch.zeros_like(terminated) if given[5] is None else as_tensor(given[5]).detach()
    n = observation.shape[:1]
    if not n or any(each.shape != n for each in (reward, terminated, truncated)) or action.shape[:1] != n:
        shapes = [tuple(each.shape) for each in (observation, action, reward, terminated, truncated)]
        raise FtnPytorchError(
            "SHAPE",
            f"{part}: observation, action, reward, terminated and truncated have shapes {shapes}; the first axis "
            "counts environments, and the last three have no other",
        )
    if following.shape != observation.shape:
        raise FtnPytorchError(
            "SHAPE", f"{part}: observations have shape {tuple(observation.shape)}, the next {tuple(following.shape)}"
        )
    reward = reward if reward.is_floating_point() else reward.float()
    return Transitions(observation, action, reward, following, terminated.bool(), truncated.bool())


def form(columns: Any) -> list[tuple[tuple[int, ...], torch.dtype]]:
    """Shapes and types."""
    return [(tuple(each.shape), each.dtype) for each in columns]
