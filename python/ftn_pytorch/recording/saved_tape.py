# SPDX-License-Identifier: MIT
"""Recordings of a file, run from Python: for tests, and for those who have no Fortran program.

Operators are called one by one, so this is no faster than the script was.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

import torch

from ..errors import FtnPytorchError
from ..ranks import sums
from ..system import private_names
from . import any_batch, portable, trusting_kernels
from .portable import Plain
from .traced_numbers import COMPUTES, CONSTANT, EQUAL, LESS, NEGATE, NUMBER, SLOT


class Misfit(NamedTuple):
    """The first argument that a recording does not take."""

    place: int
    status: str


class SavedTape:
    """One recording, with the tensors that a file holds."""

    def __init__(self, tape: Plain, where: str, device: Any) -> None:
        """``where``: begins texts. FORMAT for operators that may not be called, or that this torch has otherwise.

        device: where the constants are, and what is computed.
        """
        self._tape, self._device = tape, device
        self._operators = [_operator(each[0], each[1], each[2], where) for each in tape["operations"]]
        self.inputs: list[tuple] = tape["inputs"]
        self._constants: dict[int, Any] = dict(tape["constants"])
        self.gradients: list[tuple[str, int]] = tape["gradients"]
        self.written_inputs: list[int] = tape["written_inputs"]

    def names(self) -> list[str]:
        """The operators, in their order."""
        return [f"{each[0]}.{each[1]}".rstrip(".") for each in self._tape["operations"]]

    def tensors(self) -> list[Any]:
        """Those that are there in every run."""
        counters = [each[1] for each in self._tape["numbers"] if each[0] == "count"]
        return [*(tensor for _, tensor in self._tape["constants"]), *counters]

    def settings(self) -> list[str]:
        """Names of the numbers of optimizers that it reads."""
        return [each[1] for each in self._tape["numbers"] if each[0] == "setting"]

    def batch_of(self, given: list[Any]) -> int | Misfit:
        """The batch size of arguments, 0 where sizes are fixed, or what does not fit. There are as many as inputs."""
        batch = 0
        seen: dict[int, Any] = {}
        for place, ((_, kind, *described), value) in enumerate(zip(self.inputs, given)):
            if kind == "value":
                if not any_batch.is_equal(value, described[0]):
                    return Misfit(place, "ARGUMENT")
                continue
            slot, dtype, sizes, _ = described
            if not isinstance(value, torch.Tensor) or str(value.dtype) != f"torch.{dtype}":
                return Misfit(place, "DTYPE")
            if value.dim() != len(sizes):
                return Misfit(place, "SHAPE")
            for size, (a, b) in zip(value.shape, sizes):
                if a and not batch:
                    batch = (size - b) // a
                if size != a * batch + b or (a and batch < self._tape["least"]):
                    return Misfit(place, "SHAPE")
            if not _is_one_tensor(seen.setdefault(slot, value), value):
                return Misfit(place, "ARGUMENT")
        return batch

    def distance_of(self, given: list[Any], batch: int) -> int:
        """How far arguments that fit are from those that it was made for.

        1: they differ in strides of axes of length 1 only, which lead nowhere, but which a script may have read. 2: in
        others, or they are one tensor where it was not made so.
        """
        distance = 0
        tensors: list[tuple[int, Any]] = []
        for (_, kind, *described), value in zip(self.inputs, given):
            if kind == "value":
                continue
            slot, _, _, strides = described
            is_other = any(other != slot and _is_one_tensor(each, value) for other, each in tensors)
            if is_other or not _has_strides(value, strides, batch):
                return 2
            if value.stride() != tuple(a * batch + b for a, b in strides):
                distance = 1
            tensors.append((slot, value))
        return distance

    def holds_for(self, arrays: Mapping[str, Any]) -> bool:
        """Whether gradients that it reads or adds to are there as they were, or are not there yet."""
        for name, slot in self._tape["before"]:
            there = arrays.get(name)
            if (there is None) != (slot < 0) or (slot >= 0 and not _is_one_tensor(there, self._constants[slot])):
                return False
        return True

    def numbers(self, settings: dict[str, float]) -> list[float] | None:
        """The numbers of a run; None where a step of an optimizer goes another way than it was recorded."""
        found = [
            settings[each[1]] if each[0] == "setting" else float(each[1]) + each[2] for each in self._tape["numbers"]
        ]
        for code, left, right, is_true in self._tape["branches"]:
            one, two = _value_of(left, found, {}), _value_of(right, found, {})
            outcome = one == two if code == EQUAL else one < two if code == LESS else one <= two
            if outcome != is_true:
                return None
        return found

    def run(self, given: list[Any], batch: int, numbers: list[float], arrays: MutableMapping[str, Any]) -> Any:
        """The result. Constants are changed in place, and ``arrays`` gets new gradients."""
        tape = any_batch.at(self._tape, batch) if self._tape["batch"] else self._tape
        slots: dict[int, Any] = dict(tape["constants"])
        copied: dict[int, tuple[Any, Any]] = {}
        with torch.no_grad():
            for place, ((_, kind, *described), value) in enumerate(zip(self.inputs, given)):
                if kind == "value" or described[0] in slots:
                    continue
                slots[described[0]] = value.detach()
                if not _has_strides(value, described[3], batch):
                    strides = [a * batch + b for a, b in described[3]]
                    slots[described[0]] = torch.empty_strided(
                        value.shape, strides, dtype=value.dtype, device=value.device
                    ).copy_(value)
                    copied[place] = (value, slots[described[0]])
        with private_names.below_autograd(), torch.autocast(self._device.type, enabled=False):
            for operator, (_, _, _, arguments, results) in zip(self._operators, tape["operations"]):
                result = _call(operator, [self._argument(each, slots, numbers) for each in arguments])
                whole = result if isinstance(result, tuple) else () if result is None else (result,)
                for places, each in zip(results, whole):
                    for place, item in zip(places, each if isinstance(each, (list, tuple)) else (each,)):
                        if place >= 0:
                            slots[place] = item
        with torch.no_grad():
            for place in self.written_inputs:
                if place in copied:
                    value, copy = copied[place]
                    value.copy_(copy)
        for name, slot in self.gradients:
            arrays.pop(name, None)
            if slot >= 0:
                arrays[name] = slots[slot]
        return _filled(tape["template"], [slots[slot] for slot in tape["results"]])

    def _argument(self, described: tuple, slots: dict[int, Any], numbers: list[float]) -> Any:
        kind, value = described[0], described[1]
        if kind in ("slot", "last"):
            return slots[value]
        if kind == "list":
            return [None if each < 0 else slots[each] for each in value]
        if kind == "number":
            return _value_of(value, numbers, slots)
        if kind == "numbers":
            return [_value_of(each, numbers, slots) for each in value]
        if kind == "complex":
            return complex(value, described[2])
        if kind == "device":
            return self._device
        return value if kind == "value" else getattr(torch, value)

    def described(self) -> str:
        """Arguments, "x float32 (B, 16), t float32 (B, 4)"."""
        first: dict[int, str] = {}
        shown = []
        for number, each in enumerate(self.inputs, 1):
            name = each[0] or f"argument {number}"
            same = first.setdefault(each[2], name) if each[1] == "tensor" else name
            shown.append(_shown(each) if same is name else f"{name} the same tensor as {same}")
        return ", ".join(shown)


def _is_one_tensor(one: Any, other: Any) -> bool:
    return one is other or portable.identity(one) == portable.identity(other)


def _has_strides(value: Any, strides: list[tuple[int, int]], batch: int) -> bool:
    axes = zip(value.shape, value.stride(), strides)
    return all(size == 1 or stride == a * batch + b for size, stride, (a, b) in axes)


def _operator(name: str, overload: str, schema: str, where: str) -> Any:
    try:
        portable.refuse_operator(name, overload)
        namespace, _, short = name.partition("::")
        if name == sums.NAME:
            sums.operator()  # torch has it from then on
        found = getattr(getattr(getattr(torch.ops, namespace), short), overload or "default")
    except (portable.Unsavable, AttributeError) as reason:
        text = reason if isinstance(reason, portable.Unsavable) else f"the operator {name}, which this torch lacks"
        raise FtnPytorchError("FORMAT", f"{where} calls {text}") from None
    here = str(private_names.schema_of(found))
    if here != schema:
        raise FtnPytorchError(
            "FORMAT",
            f"{where} calls {name} as {schema}, and torch {torch.__version__} has {here}: write it again",
        )
    return found


def _call(operator: Any, values: list[Any]) -> Any:
    declared = private_names.schema_of(operator).arguments
    if private_names.schema_of(operator).name == sums.NAME:
        return sums.average_here(*values)
    if check := trusting_kernels.check_of(private_names.schema_of(operator).name):
        check({each.name: value for value, each in zip(values, declared)})
    plain = [value for value, each in zip(values, declared) if not each.kwarg_only]
    named = {each.name: value for value, each in zip(values, declared) if each.kwarg_only}
    return operator(*plain, **named)


def _value_of(formula: list, numbers: list[float], slots: dict[int, Any]) -> float:
    stack: list[float] = []
    for code, what in formula:
        if code == NUMBER:
            stack.append(numbers[what])
        elif code == SLOT:
            stack.append(float(slots[what]))
        elif code == CONSTANT:
            stack.append(what)
        elif code == NEGATE:
            stack.append(-stack.pop())
        else:
            right = stack.pop()
            stack.append(COMPUTES[code](stack.pop(), right))
    return stack[-1]


def _filled(node: tuple, tensors: list[Any]) -> Any:
    kind, what = node[0], node[1]
    if kind == "tensor":
        return tensors[what]
    if kind == "value":
        return what
    items = [_filled(each, tensors) for each in node[-1]]
    if kind in ("dict", "named"):
        return dict(zip(what, items))
    return tuple(items) if kind == "tuple" else items


def _shown(described: tuple) -> str:
    name, kind, *rest = described
    if kind == "value":
        return f"{name or 'a constant'} = {rest[0]!r}"
    axes = ", ".join(_axis(a, b) for a, b in rest[2])
    return f"{name} {rest[1]} ({axes})".strip()


def _axis(a: int, b: int) -> str:
    if not a:
        return str(b)
    return f"{'' if a == 1 else f'{a}*'}B{f' + {b}' if b > 0 else f' - {-b}' if b else ''}"
