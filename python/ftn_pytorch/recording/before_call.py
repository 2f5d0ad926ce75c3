# SPDX-License-Identifier: MIT
"""What there is before a call that is recorded: gradients, numbers of optimizers, states of random generators."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils.weak import TensorWeakRef

from ..values.optimizer_settings import sources_of
from . import optimizer_numbers
from .operations import parameters_of
from .recorder import Recorder


class Gradient(NamedTuple):
    """That of a parameter before the call, as far as the call has left it."""

    parameter: Any
    was_there: bool
    tensor: Any


class Before:
    """What there is before the call: of the objects of torch and the random generators, as they are met."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._rates: list[tuple[Any, float]] = []
        self._gradients: dict[int, tuple[Any, Any]] = {}
        self._random: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {}
        self._draw("Python's random", random, lambda module: module.getstate())
        if (numpy := sys.modules.get("numpy")) is not None:
            self._draw("numpy.random", numpy.random, lambda module: repr(module.get_state(legacy=False)))

    def _draw(self, path: str, generator: Any, state_of: Callable[[Any], Any]) -> None:
        self._random[path] = (state_of, generator, state_of(generator))

    def met(self, value: Any, path: str) -> None:
        if isinstance(value, torch.Generator):
            return
        if not isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
            self._draw(path, value, _state_of)
            return
        for each in parameters_of(value):
            # who holds a gradient that the call takes away needs memory for one more
            held = None if each.grad is None else TensorWeakRef(each.grad)
            self._gradients.setdefault(id(each), (each, held))
        if isinstance(value, torch.optim.Optimizer):
            self._rates += [(source, source.value()) for source in sources_of(value)]
            self._recorder.note_counts(optimizer_numbers.counts_of(value))

    def gradients(self) -> list[Gradient]:
        return [Gradient(parameter, ref is not None, ref and ref()) for parameter, ref in self._gradients.values()]

    def changed(self, stepped: list[dict[str, Any]]) -> str:
        """What the call has done that no run does: it has set a number of an optimizer, other than in the groups that
        schedulers have stepped, or drawn random numbers other than torch's. Empty for none of that."""
        for source, value in self._rates:
            if source.value() != value and not any(source.group is each for each in stepped):
                return f"it changes {source.key!r} of an optimizer: let the scheduler step outside of it"
        for path, (state_of, generator, state) in self._random.items():
            if state_of(generator) != state:
                return f"it draws numbers from {path}: draw them with torch, or outside, and pass them"
        return ""


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.SystemRandom):
        return None  # it has none; who draws from it is seen asking the system
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "get_state"):
        return repr(generator.get_state(legacy=False))
    return repr(getattr(generator, "bit_generator", generator).state)
