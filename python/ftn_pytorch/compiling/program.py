# SPDX-License-Identifier: MIT
"""A plan as a program of torch, which ``torch.export`` can look through."""

from __future__ import annotations

from typing import Any

import torch

from ..system import private_names
from .forms import Computed, form_of
from .plan import CONSTANT, LIST, NAME, NUMBER, SLOT, Plan, Step

_ITEM = "aten::_local_scalar_dense"


class Program(torch.nn.Module):
    """Takes the memory of a plan, and its numbers; gives its results. Memory is changed in place."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def forward(self, *tensors: Any) -> tuple[Any, ...]:
        plan = self._plan
        slots = {slot: tensor for slot, tensor in zip(plan.slots, tensors) if slot >= 0}
        for slot, view in plan.views:
            slots[slot] = torch.as_strided(tensors[view.place], view.shape, view.stride, view.offset)
        numbers = tensors[-1].unbind() if plan.numbers else ()
        for step in plan.steps:
            _run(step, slots, numbers)
        return tuple(slots[slot] for slot in plan.results)


def _run(step: Step, slots: dict[int, Any], numbers: Any) -> None:
    if step.name == _ITEM:  # a number that others are computed from, see _computed
        slots[step.results[0][0]] = _value(step.arguments[0], slots, numbers)
        return
    function = _operator(step)
    declared = private_names.schema_of(function).arguments
    given = {each.name: _value(argument, slots, numbers) for each, argument in zip(declared, step.arguments)}
    if (form := form_of(step.name, step.overload, given)) is not None:
        result = form()
    else:
        plain = {name: _plain(value) for name, value in given.items()}
        positional = [plain[each.name] for each in declared if not each.kwarg_only]
        result = function(*positional, **{each.name: plain[each.name] for each in declared if each.kwarg_only})
    whole = result if isinstance(result, tuple) else () if result is None else (result,)
    for places, each in zip(step.results, whole):
        for slot, tensor in zip(places, each if isinstance(each, (list, tuple)) else (each,)):
            if slot >= 0:
                slots[slot] = tensor


def _operator(step: Step) -> Any:
    namespace, name = step.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    return getattr(packet, step.overload or "default")


def _value(argument: tuple[int, Any], slots: dict[int, Any], numbers: Any) -> Any:
    kind, what = argument
    if kind == SLOT:
        return slots[what]
    if kind == LIST:
        return [_value(each, slots, numbers) for each in what]
    if kind == NUMBER:
        return Computed(_computed(what, slots, numbers))
    if kind == NAME:
        return getattr(torch, what)
    return what


def _computed(formula: tuple[tuple[Any, Any], ...], slots: dict[int, Any], numbers: Any) -> Any:
    """A number that depends on others, as a tensor without axes, in float64."""
    stack: list[Any] = []
    for kind, what in formula:
        if kind == NUMBER:
            stack.append(numbers[what])
        elif kind == SLOT:
            stack.append(slots[what].reshape(()).double())
        elif kind == CONSTANT:
            stack.append(torch.full((), what, dtype=torch.float64, device="cpu"))
        else:
            operands = [stack.pop() for _ in range(what)]
            stack.append(kind(*operands[::-1]))
    return stack.pop()


def _plain(value: Any) -> Any:
    """Numbers for an operator that takes no tensors in their place."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.tensor.item() if isinstance(value, Computed) else value
