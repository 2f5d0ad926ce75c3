# SPDX-License-Identifier: MIT
"""A plan as a program of torch, which ``torch.export`` can look through."""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..system import private_names
from . import plan as plans
from .forms import Computed, form_of

_ITEM = "aten::_local_scalar_dense"
_NUMBER, _SLOT, _CONSTANT, *_COMPUTES, _NEGATE = range(9)
_FUNCTIONS = dict(zip(_COMPUTES, (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)))


class Program(torch.nn.Module):
    """Takes the memory of a plan, and its numbers; gives its results. Memory is changed in place."""

    def __init__(self, plan: plans.Plan) -> None:
        super().__init__()
        self._plan = plan

    def forward(self, *tensors: Any) -> tuple[Any, ...]:
        plan = self._plan
        slots = {slot: tensor for slot, tensor in zip(plan.slots, tensors) if slot >= 0}
        for slot, view in plan.views:
            slots[slot] = torch.as_strided(tensors[view.place], view.shape, view.stride, view.offset)
        numbers = tensors[-1].unbind() if plan.numbers else ()
        call = _Call(slots, numbers, _batch(plan, tensors))
        for step in plan.steps:
            call.run(*step)
        return tuple(slots[slot] for slot in plan.results)

    def sizes(self) -> tuple[Any, ...]:
        """The axes of its tensors that follow from the batch, for ``torch.export``."""
        plan = self._plan
        rows = torch.export.Dim("batch", min=plan.least)
        found: list[Any] = [
            {
                axis: rows if (a, size) == (1, plan.batch) else a * rows + (size - a * plan.batch)
                for axis, (size, a) in enumerate(zip(each.shape, each.factors))
                if a
            }
            for each in plan.memory
        ]
        return (tuple(each or None for each in found + [None] * bool(plan.numbers)),)


def _batch(plan: plans.Plan, tensors: tuple[Any, ...]) -> Any:
    for tensor, memory in zip(tensors, plan.memory):
        for axis, a in enumerate(memory.factors):
            if a:
                return (tensor.shape[axis] - (memory.shape[axis] - a * plan.batch)) // a
    return 0


class _Call:
    def __init__(self, slots: dict[int, Any], numbers: Any, batch: Any) -> None:
        self._slots, self._numbers, self._batch = slots, numbers, batch

    def run(self, name: str, overload: str, arguments: list[tuple], results: list[list[int]]) -> None:
        if name == _ITEM:  # a number that others are computed from
            self._slots[results[0][0]] = self._value(arguments[0])
            return
        function = plans.operator(name, overload)
        declared = private_names.schema_of(function).arguments
        given = {each.name: self._value(argument) for each, argument in zip(declared, arguments)}
        if (form := form_of(name, overload, given)) is not None:
            result = form()
        else:
            plain = {each: _plain(value) for each, value in given.items()}
            positional = [plain[each.name] for each in declared if not each.kwarg_only]
            result = function(*positional, **{each.name: plain[each.name] for each in declared if each.kwarg_only})
        whole = result if isinstance(result, tuple) else () if result is None else (result,)
        for places, each in zip(results, whole):
            for slot, tensor in zip(places, each if isinstance(each, (list, tuple)) else (each,)):
                if slot >= 0:
                    self._slots[slot] = tensor

    def _value(self, argument: tuple) -> Any:
        """docs/ftr-format.md has the kinds."""
        kind, what, *more = argument
        if kind in ("slot", "last"):
            return self._slots[what]
        if kind == "list":
            return [None if slot < 0 else self._slots[slot] for slot in what]
        if kind == "number":
            return Computed(self._computed(what))
        if kind == "numbers":
            return [Computed(self._computed(each)) for each in what]
        if kind in ("dtype", "layout", "memory_format"):
            return getattr(torch, what)
        if kind == "device":
            return torch.device(what)
        if kind == "complex":
            return complex(what, *more)
        if kind == "sizes":
            return [a * self._batch + b for a, b in what]
        if kind == "fraction":
            return what / self._batch
        if kind in ("size", "real"):
            whole = what * self._batch + more[0]
            return whole if kind == "size" else torch.sym_float(whole)
        return what

    def _computed(self, formula: Any) -> Any:
        """A number that depends on others, as a tensor without axes, in float64."""
        stack: list[Any] = []
        for code, what in formula:
            if code == _NUMBER:
                stack.append(self._numbers[what])
            elif code == _SLOT:
                stack.append(self._slots[what].reshape(()).double())
            elif code == _CONSTANT:
                stack.append(torch.full((), what, dtype=torch.float64, device="cpu"))
            elif code == _NEGATE:
                stack.append(-stack.pop())
            else:
                upper = stack.pop()
                stack.append(_FUNCTIONS[code](stack.pop(), upper))
        return stack.pop()


def _plain(value: Any) -> Any:
    """Numbers for an operator that takes no tensors in their place."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.tensor.item() if isinstance(value, Computed) else value
