# SPDX-License-Identifier: MIT
"""Values of calls in files: trees of ``values`` in JSON, arrays with their strides in a NumPy archive."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..values import dtype_name, is_tensor
from ..values.encoding import TAG, UNKNOWN, Encoder, Unstorable, decode
from ..values.user_objects import find_imported_type

# What types of torch that NumPy lacks are stored as, by their size.
_STAND_INS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


class _Kept(NamedTuple):
    array: Any
    """As it was given."""
    copy: Any
    """In NumPy."""
    facts: dict[str, Any]
    """What it takes to make the array from the copy: type of torch, None for NumPy, and strides in elements."""


class CallWriter(Encoder):
    """Collects values for a file. Arrays are copied, unknown objects become their description."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: list[str] = []
        """What could not be stored, and why."""

    def add(self, value: Any, path: str = "") -> Any:
        """The JSON tree that stands for a value; ``path`` tells arrays of several values from each other."""
        return self.encode(value, path)

    def _encode(self, value: Any, path: str) -> Any:
        try:
            return super()._encode(value, path)
        except Unstorable as failure:
            self.unknown.append(str(failure))
            return {TAG: UNKNOWN, "type": f"{type(value).__module__}.{type(value).__qualname__}"}

    def _kept(self, array: Any) -> _Kept:
        import numpy

        dtype, plain = None, array
        if is_tensor(array):
            dtype, plain = dtype_name(array), _in_numpy(array.cpu())
        # A view of Fortran memory is to be laid out the same way when it is read.
        size = plain.dtype.itemsize
        strides = [stride // size if size else 0 for stride in plain.strides]
        return _Kept(array, numpy.array(plain, copy=True), {"torch": dtype, "strides": strides})

    def size(self) -> int:
        """Bytes of the arrays."""
        return sum(kept.copy.nbytes for kept in self.arrays.values())

    def changes(self, values: Any) -> dict[str, Any]:
        """Arrays of ``values`` that are no longer what ``add`` stored of them, by their path."""
        now = CallWriter()
        now.add(values)
        return {
            path: now.arrays[path].array
            for path, kept in self.arrays.items()
            if path in now.arrays and not _same_bytes(now.arrays[path].copy, kept.copy)
        }

    def write(self, folder: Path, name: str, facts: Mapping[str, Any]) -> None:
        """``name.npz`` and then, complete at once, ``name.json``."""
        import numpy

        members = {path: f"array{number}" for number, path in enumerate(self.arrays)}
        if members:
            numpy.savez(folder / f"{name}.npz", **{member: self.arrays[path].copy for path, member in members.items()})
        arrays = {path: {"member": member, **self.arrays[path].facts} for path, member in members.items()}
        part = folder / f"{name}.json.part"
        part.write_text(json.dumps({**facts, "arrays": arrays}, indent=1), encoding="utf-8")
        os.replace(part, folder / f"{name}.json")


def _in_numpy(tensor: Any) -> Any:
    """A tensor in NumPy, as integers where that lacks its type; Unstorable where the memory holds more than numbers."""
    import torch

    try:
        return tensor.numpy()
    except (TypeError, RuntimeError):
        pass
    try:
        return tensor.contiguous().view(getattr(torch, _STAND_INS[tensor.element_size()])).numpy()
    except (TypeError, RuntimeError, KeyError) as failure:
        raise Unstorable(f"a {tensor.layout} tensor of {tensor.dtype} cannot be stored") from failure


def _same_bytes(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


class CallReader:
    """What ``CallWriter`` wrote: ``facts`` as JSON, and values made of its trees."""

    def __init__(self, folder: Path, name: str) -> None:
        self.facts = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        self._file = folder / f"{name}.npz"
        self._members: dict[str, Any] = {}

    def value(self, tree: Any) -> Any:
        """The value of a tree; arrays are new ones with the strides they had. ValueError for an unknown object."""
        arrays = {path: self._array(facts) for path, facts in self.facts["arrays"].items()}
        return decode(tree, arrays, find_imported_type)

    def _array(self, facts: Mapping[str, Any]) -> Any:
        import numpy

        if not self._members:
            with numpy.load(self._file, allow_pickle=False) as archive:
                self._members = dict(archive)
        array = _laid_out(numpy, self._members[facts["member"]], facts["strides"])
        if facts["torch"] is None:
            return array
        import torch

        tensor = torch.from_numpy(array)
        return tensor if dtype_name(tensor) == facts["torch"] else tensor.view(getattr(torch, facts["torch"]))


def _laid_out(numpy: Any, array: Any, strides: list[int]) -> Any:
    """A copy with these strides, in elements."""
    last = [(extent - 1) * abs(stride) for extent, stride in zip(array.shape, strides)]
    memory = numpy.zeros(1 + sum(last) if array.size else 1, array.dtype)
    first = sum(reach for reach, stride in zip(last, strides) if stride < 0)
    steps = [stride * array.dtype.itemsize for stride in strides]
    result = numpy.lib.stride_tricks.as_strided(memory[first if array.size else 0 :], array.shape, steps)
    result[...] = array
    return result
