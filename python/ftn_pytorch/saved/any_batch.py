# SPDX-License-Identifier: MIT
"""One recording for any batch size, out of recordings of the same function with three sizes.

What differs between the first two must follow from the size: an integer as ``a * B + b``, a real number as that or as
``a / B``. The third one tells whether it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ..system.tensor_bytes import bytes_of
from .portable import Plain, Unsavable

_SIZES = ("size", "real", "fraction", "sizes")


class Sized(NamedTuple):
    """A recording, and the batch size that it was made with."""

    batch: int
    tape: Plain


def merged(one: Sized, two: Sized, third: Sized) -> Plain:
    """The recording for any batch size. Unsavable names what does not follow from it."""
    found = _Merge(one, two).tape()
    if (why := _difference(at(found, third.batch), third.tape)) is not None:
        raise Unsavable(f"{why} with a batch of {third.batch} than batches of {one.batch} and {two.batch} tell")
    return found


def at(tape: Plain, batch: int) -> Plain:
    """The recording for one batch size."""

    def pairs(all_: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(0, a * batch + b) for a, b in all_]

    def argument(each: tuple) -> tuple:
        kind = each[0]
        if kind not in _SIZES:
            return each
        if kind == "sizes":
            return "value", [a * batch + b for a, b in each[1]]
        if kind == "fraction":
            return "value", each[1] / batch
        whole = each[1] * batch + each[2]
        return "value", whole if kind == "size" else float(whole)

    inputs = [(*each[:4], pairs(each[4]), pairs(each[5])) if each[1] == "tensor" else each for each in tape["inputs"]]
    operations = [(*each[:3], [argument(one) for one in each[3]], each[4]) for each in tape["operations"]]
    return {**tape, "batch": False, "inputs": inputs, "operations": operations}


class _Merge:
    def __init__(self, one: Sized, two: Sized) -> None:
        self._one, self._two = one, two

    def tape(self) -> Plain:
        one, two = self._one.tape, self._two.tape
        inputs = [self._input(*pair) for pair in self._pairs(one["inputs"], two["inputs"], "its arguments are")]
        operations = []
        for place, pair in enumerate(self._pairs(one["operations"], two["operations"], "the operators are")):
            operations.append(self._operation(place, *pair))
        for name in ("slots", "results", "template", "before", "gradients", "writes", "written_inputs", "branches"):
            if one[name] != two[name]:
                raise Unsavable(f"{name} of its recordings are others")
        for name in ("constants", "numbers"):
            if not is_equal(one[name], two[name]):
                raise Unsavable(f"it uses a tensor that is another one for each batch size: {_told(one, two)}")
        return {**one, "batch": True, "inputs": inputs, "operations": operations}

    def _pairs(self, one: list, two: list, what: str) -> list[tuple[Any, Any]]:
        if len(one) != len(two):
            raise Unsavable(f"{what} {len(one)} with a batch of {self._one.batch}, {len(two)} with {self._two.batch}")
        return list(zip(one, two))

    def _input(self, one: tuple, two: tuple) -> tuple:
        if one[1] == "value" or one[:4] != two[:4] or any(len(one[k]) != len(two[k]) for k in (4, 5)):
            if is_equal(one, two):
                return one
            raise Unsavable(f"its argument {one[0]!r} is of another kind for each batch size")
        sizes = [[self._whole(a, b) for (_, a), (_, b) in zip(one[k], two[k])] for k in (4, 5)]
        return (*one[:4], *sizes)

    def _operation(self, place: int, one: tuple, two: tuple) -> tuple:
        if one[:3] != two[:3] or one[4] != two[4] or len(one[3]) != len(two[3]):
            raise Unsavable(
                f"operation {place + 1} is {one[0]} with a batch of {self._one.batch}, and {two[0]} with "
                f"{self._two.batch}"
            )
        try:
            arguments = [self._argument(*pair) for pair in zip(one[3], two[3])]
        except Unsavable as reason:
            raise Unsavable(f"operation {place + 1}, {one[0]}: {reason}") from None
        return (*one[:3], arguments, one[4])

    def _argument(self, one: tuple, two: tuple) -> tuple:
        if is_equal(one, two):
            return one
        if one[0] == two[0] == "value":
            a, b = one[1], two[1]
            if type(a) is type(b) is int:
                return ("size", *self._whole(a, b))
            if type(a) is type(b) is float:
                return self._real(a, b)
            if _are_sizes(a) and _are_sizes(b) and len(a) == len(b):
                return "sizes", [self._whole(*pair) for pair in zip(a, b)]
        n, m = self._one.batch, self._two.batch
        raise Unsavable(f"it is given {one[1]!r} with a batch of {n}, and {two[1]!r} with {m}")

    def _whole(self, one: int, two: int) -> tuple[int, int]:
        """a and b of a * B + b."""
        a, rest = divmod(two - one, self._two.batch - self._one.batch)
        if rest:
            raise Unsavable(f"{one} and {two} do not follow from the batch size")
        return a, one - a * self._one.batch

    def _real(self, one: float, two: float) -> tuple:
        n, m = self._one.batch, self._two.batch
        if one.is_integer() and two.is_integer():
            return ("real", *self._whole(int(one), int(two)))
        for a in (float(round(one * n)), one * n, two * m):
            if a / n == one and a / m == two:
                return "fraction", a
        raise Unsavable(f"{one!r} and {two!r} do not follow from the batch size")


def is_equal(one: Any, two: Any) -> bool:
    """Bit for bit, also where tensors are inside; two tensors of one memory are equal."""
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        same = (one.dtype, one.shape, one.stride()) == (two.dtype, two.shape, two.stride())
        return same and (one.data_ptr() == two.data_ptr() or torch.equal(bytes_of(one), bytes_of(two)))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(is_equal(one[key], two[key]) for key in one)
    if isinstance(one, (tuple, list)) and isinstance(two, (tuple, list)):
        return len(one) == len(two) and all(map(is_equal, one, two))
    if isinstance(one, float) and isinstance(two, float):
        return one.hex() == two.hex()  # zero is not minus zero, and what is no number is the same as itself
    return type(one) is type(two) and one == two


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int for each in value)


def _told(one: Plain, two: Plain) -> str:
    for (_, first), (_, second) in zip(one["constants"], two["constants"]):
        if not is_equal(first, second):
            return f"of shape {tuple(first.shape)} and {tuple(second.shape)}"
    return "there are more of them"


def _difference(one: Plain, two: Plain) -> str | None:
    """What differs first between two recordings of one batch size."""
    for place, (first, second) in enumerate(zip(one["operations"], two["operations"])):
        if not is_equal(first, second):
            return f"operation {place + 1}, {second[0]}, is given something else"
    same = all(is_equal(one[name], two[name]) for name in one if name != "batch")
    return None if same else "the recording is another one"
