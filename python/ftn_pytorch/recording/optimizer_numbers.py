# SPDX-License-Identifier: MIT
"""Numbers of optimizers (``param_groups``, counts of steps) as values that each call of a recording is given.

An operator is called with a plain number, which does not tell where it comes from. So the numbers of a recorded step
are traced. A trial step with other numbers, which is undone, shows that nothing was overlooked: an argument that is
another one there must have been computed from them, in a way that gives both.
"""

from __future__ import annotations

import itertools
import numbers
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import is_of_memory
from ..values.optimizer_settings import Source, is_live, sources_of
from .operations import Operation, Slot, address_of, parameters_of
from .recorder import TOO_LITTLE, Recorder, Unrecordable
from .traced_numbers import CONSTANT, NUMBER, SLOT, Branch, Number, Trace, renumbered

_MANY, _FEW = 16, 7


@dataclass
class Steps:
    """The operations of one step of an optimizer, and of a trial of it with other numbers."""

    optimizer: Any
    sources: list[Source]
    """As the step finds them: a scheduler behind it may make a number zero, which is none of them."""
    begin: int
    trace: Trace
    trial: list[Operation]
    tried: Trace
    end: int = 0


def counts_of(optimizer: Any) -> list[Any]:
    """Numbers that a step may read out of its state."""
    found = [each for state in _states_of(optimizer) for each in state.values()] if is_live(optimizer) else []
    return [each for each in found if isinstance(each, torch.Tensor) and each.ndim == 0]


def _steps_of(optimizer: Any) -> list[Any]:
    """Those of them that count steps."""
    counts = set(map(id, counts_of(optimizer)))
    return [state["step"] for state in _states_of(optimizer) if id(state.get("step")) in counts]


def _states_of(optimizer: Any) -> list[dict[str, Any]]:
    return [each for each in optimizer.state.values() if isinstance(each, dict)]


class Trials:
    """Makes the trial steps while a call is recorded."""

    def __init__(self, recorder: Recorder) -> None:
        self.steps: list[Steps] = []
        self._recorder = recorder
        self._traced: list[tuple[dict[str, Any], str, Any, Any]] = []
        """Items of groups, what stands there otherwise, and the numbers that are traced now."""

    def begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """A step begins, which is given these."""
        recorder = self._recorder
        if recorder.obstacle:
            return
        recorder.stepping = optimizer
        if not is_live(optimizer):
            # what its step changes besides tensors is not known, so a trial of it could not be undone
            return
        if any(callable(value) for value in (*args[1:], *kwargs.values())):
            recorder.obstacle = f"the step of {type(optimizer).__name__} is given a closure"
            return
        if odd := _odd_numbers(optimizer):
            # they compute with the class of numbers that are traced by other rules than with plain ones
            recorder.refuse(f"{odd[0]!r} of {type(optimizer).__name__} is a {odd[1]}: make it a float")
            return
        tried = Trace()
        try:
            with recorder.aside() as trial:
                self._try(optimizer, tried)
        except Exception as failure:  # the step itself is still to come
            is_short = is_of_memory(failure)
            recorder.refuse(TOO_LITTLE if is_short else f"a trial step of {type(optimizer).__name__} fails ({failure})")
            return
        finally:
            recorder.trace = None
        recorder.trace = trace = Trace()
        sources = sources_of(optimizer)
        self.steps.append(Steps(optimizer, sources, len(recorder.operations), trace, trial, tried))
        for place, source in enumerate(sources):
            group, key, before = source.group, source.key, source.group[source.key]
            traced = source.replaced(trace.number(source.value(), ((NUMBER, place),)))
            # what another thread sets stays: without a call in between, none of them comes in between
            if group[key] is before:
                group[key] = traced
                self._traced.append((group, key, before, traced))

    def end(self, optimizer: Any = None) -> None:
        """It has ended, or the call has."""
        self._recorder.stepping = self._recorder.trace = None
        while self._traced:
            group, key, value, traced = self._traced.pop()
            if key in group and group[key] is traced:
                group[key] = value
        if self.steps and self.steps[-1].optimizer is optimizer:
            self.steps[-1].end = len(self._recorder.operations)

    def _try(self, optimizer: Any, trace: Trace) -> None:
        """A step with other numbers, after which everything is as before."""
        recorder = self._recorder
        stand_in = _stand_in_for(optimizer)
        with recorder.paused():
            copies = [(tensor, tensor.detach().clone()) for tensor in _tensors_of(optimizer)]
            for place, source in enumerate(sources_of(stand_in)):
                source.put(trace.number(_other(source.value(), place), ((NUMBER, place),)))
            for place, count in enumerate(_steps_of(optimizer)):
                count.copy_(_other_count(float(count), place))
        recorder.trace = trace
        try:
            type(optimizer).step(stand_in)  # a program may have put one of its own in front of that of torch
        finally:
            with recorder.paused(), torch.no_grad():
                for tensor, copy in copies:
                    tensor.copy_(copy)


def _stand_in_for(optimizer: Any) -> Any:
    """One with groups and state of its own, and the same tensors: other threads read and set those of the optimizer."""
    made = object.__new__(type(optimizer))
    vars(made).update(vars(optimizer))
    made.param_groups = [dict(each) for each in optimizer.param_groups]
    # copied by one call, in which no other thread can come in between
    made.state = optimizer.state.copy()
    made.state.update({key: dict(each) for key, each in made.state.items() if isinstance(each, dict)})
    return made


def _odd_numbers(optimizer: Any) -> tuple[str, str] | None:
    """Name and class of a number of an optimizer that is none of Python, such as a float32 of NumPy."""
    for group in optimizer.param_groups:
        for key, value in group.items():
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, numbers.Number) and not isinstance(each, (int, float, complex)):
                    return key, type(each).__name__
    return None


def _other(value: float, place: int) -> float:
    """Near enough that limits such as beta < 1 hold, and another one for each number."""
    return value * (1 - 1 / (1024 + 37 * place))


def _other_count(value: float, place: int) -> float:
    """Near enough that a step takes the same way, far from where powers vanish, and another one for each parameter."""
    return (value + 1 if value < _MANY else _FEW) + place / 4096


def _tensors_of(optimizer: Any) -> list[Any]:
    """Parameters, gradients and state of an optimizer, that of a parameter included which has left its group."""
    parameters = parameters_of(optimizer)
    tables = [each.values() for each in (*optimizer.param_groups, *_states_of(optimizer))]
    found = itertools.chain(parameters, (each.grad for each in parameters), *tables)
    return [each for each in found if isinstance(each, torch.Tensor)]


def find(steps: Steps, recorder: Recorder, listed: list[tuple]) -> list[Branch]:
    """Put a ``Number`` in place of each argument that depends on numbers, which are added to a list.

    The comparisons that decide on the way of the step.
    """
    made, name = recorder.operations[steps.begin : steps.end], type(steps.optimizer).__name__
    one, other = steps.trace, steps.tried
    if [each.operator for each in made] != [each.operator for each in steps.trial] or one.ways() != other.ways():
        raise Unrecordable(f"which operators the step of {name} calls depends on its numbers")
    places = [_place(source, listed) for source in steps.sources]
    known: dict[tuple[str, str], Any] = {}
    for a, b, formula in zip(one.values, other.values, one.formulas):
        known.setdefault((a.hex(), b.hex()), formula)

    def number_of(value: Any, tried: Any) -> Any:
        if type(value) is not float or type(tried) is not float:
            return value if value == tried else None
        formula = known.get((value.hex(), tried.hex()))
        found = None if formula is None else Number(renumbered(formula, {NUMBER: places}))
        return value if value.hex() == tried.hex() else found

    for real, trial in zip(made, steps.trial):
        for place, (value, tried) in enumerate(zip(real.arguments, trial.arguments)):
            if _is_same(value, tried, recorder):
                continue
            are_lists = isinstance(value, list) and isinstance(tried, list) and len(value) == len(tried)
            found = [number_of(*pair) for pair in (zip(value, tried) if are_lists else [(value, tried)])]
            if None in found:
                keys = ", ".join(sorted({source.key for source in steps.sources}))
                what = f"{real.name} in the step of {name} is given what depends on {keys}"
                raise Unrecordable(f"{what} in a way that is not known")
            real.arguments[place] = found if are_lists else found[0]
    return _branches(steps, recorder, places, listed)


def _branches(steps: Steps, recorder: Recorder, places: list[int], listed: list[tuple]) -> list[Branch]:
    """They are made before a call, when a count of steps is one less than what the step reads."""
    counters: dict[int, int] = {}
    for slot in {what for _, *both in steps.trace.branches for each in both for code, what in each if code == SLOT}:
        counter, before = recorder.counts[recorder.reads[slot]]
        writers = [each for each in recorder.operations if address_of(counter) in each.writes]
        if len(writers) != 1 or "add_" not in writers[0].name or float(counter) != before + 1:
            raise Unrecordable(f"the step of {type(steps.optimizer).__name__} compares what it reads out of its state")
        counters[slot] = _place((counter, 1), listed)
    found = []
    for (code, *both), is_true in steps.trace.branches.items():
        left, right = (renumbered(each, {NUMBER: places, SLOT: counters}) for each in both)
        found.append((code, left, right, is_true))
    return found


def comparisons_of(recorder: Recorder, listed: list[tuple]) -> list[Branch]:
    """Those that the function made outside of steps, with a tensor that counts, such as that of ``AveragedModel``."""
    return [
        (code, ((NUMBER, _place((tensor, 0), listed)),), ((CONSTANT, number),), is_true)
        for (code, _, number, is_true), tensor in recorder.branches.items()
    ]


def _place(source: tuple, listed: list[tuple]) -> int:
    """Of a number, or a counter, in a list of which it becomes a part."""
    for place, each in enumerate(listed):
        if len(each) == len(source) and each[0] is source[0] and each[1:] == source[1:]:
            return place
    listed.append(source)
    return len(listed) - 1


def _is_same(value: Any, tried: Any, recorder: Recorder) -> bool:
    """Whether an argument did not depend on the numbers. Tensors that an operator made are told by that."""
    if isinstance(value, list) and isinstance(tried, list):
        return len(value) == len(tried) and all(_is_same(*pair, recorder) for pair in zip(value, tried))
    if not isinstance(value, Slot) or not isinstance(tried, Slot):
        return value == tried and type(value) is type(tried)
    one, other = recorder.outside.get(value.number), recorder.outside.get(tried.number)
    return one is other or one is None or other is None or torch.equal(one, other)
