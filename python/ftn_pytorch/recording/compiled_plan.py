# SPDX-License-Identifier: MIT
"""What a compiler is told of a recording, and the tensors that its code is given in each call."""

from __future__ import annotations

import operator
from typing import Any

import torch

from ..compiling import plan
from ..system import private_names
from .memory_spans import elements_of
from .operations import Operation, Slot, address_of, is_of_ranks, is_ordinary
from .tape import Tape
from .traced_numbers import COMPUTES, CONSTANT, NEGATE, NUMBER, SLOT, Number, formula_of

_KINDS = {NUMBER: plan.NUMBER, SLOT: plan.SLOT, CONSTANT: plan.CONSTANT}


class Uncompilable(Exception):
    """The text says why."""


class Memory:
    """What is there before a call, each piece of memory once."""

    def __init__(self, tape: Tape, inputs: list[Any]) -> None:
        self.tensors: list[Any] = []
        self.slots: list[int] = []
        self.views: list[tuple[int, plan.View]] = []
        self._tape, self._first = tape, len(inputs)
        self._there = dict(tape.constants)
        by_storage: dict[tuple, list[tuple[int, Any]]] = {}
        for slot, tensor in tape.constants:
            if not tensor.is_cpu or not is_ordinary(tensor) or tensor.is_conj() or tensor.is_neg():
                raise Uncompilable("it uses a tensor that is not plain memory of the host")
            key = (address_of(tensor), 0) if address_of(tensor) else (0, slot)
            by_storage.setdefault(key, []).append((slot, tensor))
        for group in by_storage.values():
            self._add(group)
        wanted = [*tape.results, *(slot for _, slot, _ in tape.gradients_after if slot >= 0)]
        places = dict(zip(tape.inputs, range(len(inputs))))
        self._given = {slot: places[slot] for slot in wanted if slot in places}
        self.computed = [slot for slot in dict.fromkeys(wanted) if slot not in self._there and slot not in places]

    def _add(self, group: list[tuple[int, Any]]) -> None:
        tensors = [tensor.detach() for _, tensor in group]
        place = self._first + len(self.tensors)
        looks = {(each.shape, each.stride(), each.storage_offset(), each.dtype) for each in tensors}
        if len(looks) == 1:
            self.tensors.append(tensors[0])
            self.slots.append(group[0][0])
            first = plan.memory_of(tensors[0])
            self.views += [(slot, plan.View(place, first.shape, first.stride, 0)) for slot, _ in group[1:]]
            return
        if len({each.dtype for each in tensors}) > 1:
            raise Uncompilable("it uses the same memory as numbers of two types")
        begin = min(each.storage_offset() for each in tensors)
        end = max(each.storage_offset() + elements_of(each) for each in tensors)
        self.tensors.append(tensors[0].as_strided((end - begin,), (1,), begin))
        self.slots.append(-1)
        for slot, each in group:
            view = plan.View(place, tuple(each.shape), tuple(each.stride()), each.storage_offset() - begin)
            self.views.append((slot, view))

    def results_of(self, inputs: list[Any], made: list[Any]) -> tuple[tuple, list[Any]]:
        """Results and gradients in the order of the tape."""
        found = dict(zip(self.computed, made))

        def tensor(slot: int) -> Any:
            if slot in found:
                return found[slot]
            return (self._there[slot] if slot in self._there else inputs[self._given[slot]]).detach()

        gradients = [None if slot < 0 else tensor(slot) for _, slot, _ in self._tape.gradients_after]
        return tuple(tensor(slot) for slot in self._tape.results), gradients


def plan_of(tape: Tape, inputs: list[Any], memory: Memory) -> plan.Plan:
    if not all(tensor.is_cpu and is_ordinary(tensor) for tensor in inputs):
        raise Uncompilable("it is given a tensor that is not plain memory of the host")
    if not memory.computed and not tape.written and not tape.written_inputs:
        raise Uncompilable("it computes nothing")
    return plan.Plan(
        steps=tuple(map(_step, tape.steps)),
        memory=tuple(plan.memory_of(each) for each in (*inputs, *memory.tensors)),
        slots=(*tape.inputs, *memory.slots),
        views=tuple(memory.views),
        numbers=len(tape.numbers),
        results=tuple(memory.computed),
        threads=torch.get_num_threads(),
    )


def _step(operation: Operation) -> plan.Step:
    if operation.is_random:
        raise Uncompilable(f"{operation.name} ({operation.place}) draws random numbers")
    if is_of_ranks(operation.operator):
        raise Uncompilable(f"{operation.name} ({operation.place}) is an operation of all ranks")
    if operation.is_required or operation.is_tried:
        raise Uncompilable(f"{operation.name} ({operation.place}) may fail, and the call goes another way then")
    schema = private_names.schema_of(operation.operator)
    return plan.Step(
        name=schema.name,
        overload=schema.overload_name,
        arguments=tuple(map(_argument, operation.arguments)),
        results=tuple(map(tuple, operation.results)),
    )


def _argument(value: Any) -> tuple[int, Any]:
    if isinstance(value, Slot):
        return plan.SLOT, value.number
    if isinstance(value, Number):
        return plan.NUMBER, tuple(map(_part, formula_of(value)))
    if isinstance(value, list) and any(isinstance(each, (Slot, Number)) for each in value):
        return plan.LIST, tuple(map(_argument, value))
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return plan.NAME, str(value).removeprefix("torch.")
    return plan.VALUE, value


def _part(of_formula: tuple[int, Any]) -> tuple[Any, Any]:
    code, what = of_formula
    if code in _KINDS:
        return _KINDS[code], what
    return (operator.neg, 1) if code == NEGATE else (COMPUTES[code], 2)
