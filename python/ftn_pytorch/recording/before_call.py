# SPDX-License-Identifier: MIT
"""What there is before a call that is recorded: gradients, numbers of optimizers, states of random generators."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch
from torch.utils.weak import TensorWeakRef

from ..values.optimizer_settings import sources_of
from . import optimizer_numbers
from .operations import parameters_of
from .recorder import Recorder


class Before:
    """What there is before the call: of the objects of torch and the random generators, as they are met."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._rates: list[tuple[Any, float]] = []
        self._gradients: dict[int, tuple[Any, Any]] = {}
        self._random = {"Python's random": (random, _state_of(random))}
        """Other generators than those of torch, by their paths, and their states."""
        if (numpy := sys.modules.get("numpy")) is not None:
            self._random["numpy.random"] = (numpy.random, _state_of(numpy.random))

    def met(self, value: Any, path: str) -> None:
        if isinstance(value, torch.Generator):
            return
        if not isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
            self._random[path] = (value, _state_of(value))
            return
        for each in parameters_of(value):
            # who holds a gradient that the call takes away needs memory for one more
            held = None if each.grad is None else TensorWeakRef(each.grad)
            self._gradients.setdefault(id(each), (each, held))
        if isinstance(value, torch.optim.Optimizer):
            self._rates += [(source, source.value()) for source in sources_of(value)]
            self._recorder.note_counts(optimizer_numbers.counts_of(value))

    def gradients(self) -> list[tuple[Any, bool, Any]]:
        """Each parameter, whether it had a gradient, and that gradient if it is still alive."""
        return [(parameter, ref is not None, ref and ref()) for parameter, ref in self._gradients.values()]

    def changed(self, stepped: list[dict[str, Any]]) -> str:
        """What the call has done that no run does: it has set a number of an optimizer, other than in the groups that
        schedulers have stepped, or drawn random numbers other than torch's. Empty for none of that."""
        for source, value in self._rates:
            if source.value() != value and not any(source.group is each for each in stepped):
                return f"it changes {source.key!r} of an optimizer: let the scheduler step outside of it"
        for path, (generator, state) in self._random.items():
            if _state_of(generator) != state:
                return f"it draws numbers from {path}: draw them with torch, or outside, and pass them"
        return ""


def _state_of(generator: Any) -> Any:
    """Of an object, or of the module that has one."""
    if isinstance(generator, random.SystemRandom):
        return None  # it has none; who draws from it is seen asking the system
    if hasattr(generator, "getstate"):
        return generator.getstate()
    if hasattr(generator, "get_state"):
        return repr(generator.get_state(legacy=False))
    return repr(getattr(generator, "bit_generator", generator).state)
