# SPDX-License-Identifier: MIT
"""Numbers of optimizers (``param_groups``), which schedulers change, as values that each call of a recording is given.

An operator is called with a plain number, which does not tell where it comes from. So before the step that is recorded
the optimizer makes a trial step with other numbers, which is undone. An argument that was another one in the trial
depends on the numbers; it must be one of them, or one of the forms below, in both steps to the last bit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from ..errors import is_of_memory
from .tape import TOO_LITTLE, Operation, Recorder, Slot


def is_live(optimizer: Any) -> bool:
    """True for a class of torch, whose numbers are understood. Others may do anything with theirs: a rule that two
    points show need not hold for a third.
    """
    return type(optimizer).__module__.startswith("torch.optim")


def is_setting(value: Any) -> bool:
    """True for what a scheduler may change: numbers other than zero, alone or in tuples."""
    if isinstance(value, tuple):
        return bool(value) and all(is_setting(item) for item in value)
    return isinstance(value, float) and value != 0


@dataclass
class Steps:
    """The operations of one step of an optimizer, and of a trial of it with other numbers."""

    optimizer: Any
    begin: int
    end: int = 0
    trial: list[Operation] = field(default_factory=list)


ITSELF, NEGATIVE, COMPLEMENT, DECAY = range(4)
"""p, -p, 1 - p, 1 - p q: the forms of ``Number`` in src/recording/validity.hpp."""


class Source(NamedTuple):
    """A number of a group, maybe an item of a tuple."""

    group: dict[str, Any]
    key: str
    item: int

    def value(self) -> float:
        return self.group[self.key] if self.item < 0 else self.group[self.key][self.item]


class Number(NamedTuple):
    """How an argument of an operator is computed from numbers of groups."""

    form: int
    p: Source
    q: Source


def sources_of(optimizer: Any) -> list[Source]:
    found: list[Source] = []
    if not is_live(optimizer):
        return found
    for group in optimizer.param_groups:
        for key, value in group.items():
            if key != "params" and is_setting(value):
                items = range(len(value)) if isinstance(value, tuple) else [-1]
                found += [Source(group, key, item) for item in items]
    return found


class Trials:
    """Makes the trial steps while a call is recorded.

    Hooks of these optimizers: those of all optimizers belong to all threads, and others may be calling them.
    """

    def __init__(self, recorder: Recorder, optimizers: Iterable[Any]) -> None:
        self.steps: list[Steps] = []
        self._recorder = recorder
        self._optimizers = list(optimizers)
        self._is_trial = False
        self._thread = threading.get_ident()
        self._hooks: list[Any] = []

    def __enter__(self) -> Trials:
        for each in self._optimizers:
            self._hooks += [each.register_step_pre_hook(self._before), each.register_step_post_hook(self._after)]
        return self

    def __exit__(self, *failure: Any) -> None:
        for hook in self._hooks:
            hook.remove()

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        recorder = self._recorder
        if self._is_trial or recorder.obstacle or self._is_elsewhere():
            return
        if any(callable(value) for value in (*args[1:], *kwargs.values())):
            recorder.obstacle = f"the step of {type(optimizer).__name__} is given a closure"
            return
        self._is_trial = True
        recorder.stepping = optimizer
        try:
            with recorder.aside() as trial:
                self._try(optimizer)
        except Exception as failure:  # the step itself is still to come
            is_short = is_of_memory(failure)
            recorder.refuse(TOO_LITTLE if is_short else f"a trial step of {type(optimizer).__name__} fails ({failure})")
            return
        finally:
            self._is_trial = False
        self.steps.append(Steps(optimizer, len(recorder.operations), trial=trial))

    def _is_elsewhere(self) -> bool:
        """Another thread may make a step with the same optimizer."""
        return threading.get_ident() != self._thread

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._is_elsewhere():
            return
        if not self._is_trial:
            self._recorder.stepping = None
        if not self._is_trial and self.steps and self.steps[-1].optimizer is optimizer:
            self.steps[-1].end = len(self._recorder.operations)

    def _try(self, optimizer: Any) -> None:
        """A step with other numbers, after which everything is as before."""
        recorder = self._recorder
        tensors = list(_tensors_of(optimizer))
        recorder.is_paused = True
        try:
            copies = [tensor.detach().clone() for tensor in tensors]
        except BaseException:
            recorder.is_paused = False
            raise
        # an optimizer of the user may count in fields of its own; state may be made in the first step
        known = [(each, dict(each)) for each in (vars(optimizer), *optimizer.param_groups, optimizer.state)]
        known += [(each, dict(each)) for each in optimizer.state.values() if isinstance(each, dict)]
        for place, source in enumerate(sources_of(optimizer)):
            _set(source, _other(source.value(), place))
        recorder.is_paused = False
        try:
            optimizer.step()
        finally:
            recorder.is_paused = True
            for container, before in known:
                container.clear()
                container.update(before)
            with torch.no_grad():
                for tensor, copy in zip(tensors, copies):
                    tensor.copy_(copy)
            recorder.is_paused = False


def _other(value: float, place: int) -> float:
    """Near enough that limits such as beta < 1 hold, and another one for each number."""
    return value * (1 - 1 / (1024 + 37 * place))


def _set(source: Source, value: float) -> None:
    if source.item < 0:
        source.group[source.key] = value
    else:
        items = list(source.group[source.key])
        items[source.item] = value
        source.group[source.key] = tuple(items)


def _tensors_of(optimizer: Any) -> Iterator[Any]:
    """Parameters, gradients and state of an optimizer."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            values = state.values() if isinstance(state, dict) else ()
            yield from (each for each in (parameter, parameter.grad, *values) if isinstance(each, torch.Tensor))
        yield from (each for each in group.values() if isinstance(each, torch.Tensor))


def find(steps: Steps, recorder: Recorder) -> tuple[dict[tuple[int, int], Number], str]:
    """Numbers by operation and argument, and why a step cannot be recorded, if it cannot."""
    made, name = recorder.operations[steps.begin : steps.end], type(steps.optimizer).__name__
    if [each.operator for each in made] != [each.operator for each in steps.trial]:
        return {}, f"which operators the step of {name} calls depends on its numbers"
    sources = sources_of(steps.optimizer)
    now = [source.value() for source in sources]
    other = [_other(value, place) for place, value in enumerate(now)]
    found = {}
    for index, (real, trial) in enumerate(zip(made, steps.trial)):
        for place, (value, tried) in enumerate(zip(real.arguments, trial.arguments)):
            if _is_same(value, tried, recorder):
                continue
            forms = _forms(len(sources))
            fits = (form for form in forms if (_value(now, *form), _value(other, *form)) == (value, tried))
            fit = None if isinstance(value, (Slot, list)) else next(fits, None)
            if fit is None:
                keys = ", ".join(sorted({source.key for source in sources}))
                what = f"{real.name} in the step of {name} is given what depends on {keys}"
                return {}, f"{what} in a way that is not known"
            form, p, q = fit
            found[steps.begin + index, place] = Number(form, sources[p], sources[q])
    return found, ""


def _is_same(value: Any, tried: Any, recorder: Recorder) -> bool:
    """Whether an argument did not depend on the numbers. Tensors that an operator made are told by that."""
    if isinstance(value, list) and isinstance(tried, list):
        return len(value) == len(tried) and all(_is_same(*pair, recorder) for pair in zip(value, tried))
    if not isinstance(value, Slot) or not isinstance(tried, Slot):
        return value == tried
    one, other = recorder.outside.get(value.number), recorder.outside.get(tried.number)
    return one is other or one is None or other is None or torch.equal(one, other)


def _forms(count: int) -> Iterator[tuple[int, int, int]]:
    """Form, and the places of p and q among the numbers."""
    for p in range(count):
        for form in (ITSELF, NEGATIVE, COMPLEMENT):
            yield form, p, p
    for p in range(count):
        for q in range(count):
            yield DECAY, p, q


def _value(known: list[float], form: int, p: int, q: int) -> float:
    return {ITSELF: known[p], NEGATIVE: -known[p], COMPLEMENT: 1 - known[p], DECAY: 1 - known[p] * known[q]}[form]
