# SPDX-License-Identifier: MIT
"""What a compiler is told of a recording, and the tensors that its code is given in each call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ..compiling import plan
from .memory_spans import elements_of
from .operations import Operation, address_of, is_ordinary
from .tape import Described, Tape


class Uncompilable(Exception):
    """The text says why."""


class Memory:
    """What is there before a call, each piece of memory once."""

    def __init__(self, constants: Sequence[tuple[int, Any]], inputs: Sequence[int], wanted: Iterable[int]) -> None:
        """By slots: ``wanted`` are needed after the call."""
        self.tensors: list[Any] = []
        self.slots: list[int] = []
        self.views: list[tuple[int, plan.View]] = []
        self._first = len(inputs)
        by_storage: dict[tuple, list[tuple[int, Any]]] = {}
        for slot, tensor in constants:
            if not tensor.is_cpu or not is_ordinary(tensor) or tensor.is_conj() or tensor.is_neg():
                raise Uncompilable("it uses a tensor that is not plain memory of the host")
            key = (address_of(tensor), 0) if address_of(tensor) else (0, slot)
            by_storage.setdefault(key, []).append((slot, tensor))
        for group in by_storage.values():
            self._add(group)
        there = {*inputs, *(slot for slot, _ in constants)}
        self.computed = [slot for slot in dict.fromkeys(wanted) if slot >= 0 and slot not in there]

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


def plan_of(tape: Tape, inputs: list[Any], memory: Memory) -> plan.Plan:
    if not all(tensor.is_cpu and is_ordinary(tensor) for tensor in inputs):
        raise Uncompilable("it is given a tensor that is not plain memory of the host")
    if not memory.computed and not tape.written and not tape.written_inputs:
        raise Uncompilable("it computes nothing")
    return plan.Plan(
        steps=tuple(map(_step, tape.steps, tape.operations)),
        memory=tuple(plan.memory_of(each) for each in (*inputs, *memory.tensors)),
        slots=(*tape.inputs, *memory.slots),
        views=tuple(memory.views),
        numbers=len(tape.numbers),
        results=tuple(memory.computed),
        threads=torch.get_num_threads(),
    )


def _step(operation: Operation, described: Described) -> plan.Step:
    name, overload, arguments, results = described
    if why := plan.obstacle(name, overload):
        raise Uncompilable(f"{operation.name} ({operation.place}) {why}")
    if operation.is_required or operation.is_tried:
        raise Uncompilable(f"{operation.name} ({operation.place}) may fail, and the call goes another way then")
    return name, overload, list(map(_argument, arguments)), results


def _argument(described: tuple[str, Any]) -> tuple[str, Any]:
    value = described[1]
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return "dtype", str(value).removeprefix("torch.")
    return described
