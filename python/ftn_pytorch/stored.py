# SPDX-License-Identifier: MIT
"""Values of calls in files: a tree in JSON, the arrays beside it in a NumPy archive, without pickled objects."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Types of torch that NumPy lacks, stored as integers of their size.
_FOREIGN = {"bfloat16": "int16"}


class Store:
    """Collects values; arrays become entries of an archive, and everything else JSON."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}

    def add(self, value: Any) -> Any:
        """The JSON tree that stands for a value. Arrays are copied. Unknown objects become their description."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, (list, tuple)):
            return {"tuple" if isinstance(value, tuple) else "list": [self.add(item) for item in value]}
        if isinstance(value, Mapping):
            return {"dict": [[str(name), self.add(item)] for name, item in value.items()]}
        tree = self._array(value)
        return {"other": f"{type(value).__module__}.{type(value).__qualname__}"} if tree is None else tree

    def _array(self, value: Any) -> dict[str, Any] | None:
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        tree: dict[str, Any] = {"framework": "numpy"}
        if torch is not None and isinstance(value, torch.Tensor):
            dtype = str(value.dtype).replace("torch.", "")
            tree = {"framework": "torch", "dtype": dtype, "requires_grad": value.requires_grad}
            plain = value.detach().cpu().resolve_conj().resolve_neg()
            if dtype in _FOREIGN:
                plain = plain.contiguous().view(getattr(torch, _FOREIGN[dtype]))
            value = plain.numpy()
        elif numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
            return None
        tree["array"] = f"array{len(self.arrays)}"
        # strides in elements, so that a view of Fortran memory is laid out the same way when it is read
        size = value.dtype.itemsize
        tree["strides"] = [stride // size if size else 0 for stride in value.strides]
        self.arrays[tree["array"]] = numpy.array(value, copy=True)  # type: ignore[union-attr]
        return tree

    def changes(self, tree: Any, values: Any, path: str = "") -> dict[str, Any]:
        """Arrays of ``values`` that are no longer what ``add`` stored, by their place in the tree."""
        if isinstance(tree, dict) and "array" in tree:
            now = Store()
            now.add(values)
            return {} if _same_bytes(now.arrays["array0"], self.arrays[tree["array"]]) else {path: values}
        changed: dict[str, Any] = {}
        if isinstance(tree, dict):
            for kind in ("list", "tuple"):
                for number, (part, value) in enumerate(zip(tree.get(kind, ()), values)):
                    changed.update(self.changes(part, value, f"{path}/{number}"))
            for name, part in tree.get("dict", ()):
                changed.update(self.changes(part, values[name], f"{path}/{name}"))
        return changed

    def write(self, folder: Path, name: str, facts: Mapping[str, Any]) -> None:
        """``name.npz`` and then, complete at once, ``name.json``."""
        import numpy

        if self.arrays:
            numpy.savez(folder / f"{name}.npz", **self.arrays)
        part = folder / f"{name}.json.part"
        part.write_text(json.dumps(facts, indent=1), encoding="utf-8")
        os.replace(part, folder / f"{name}.json")


def _same_bytes(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


class Stored:
    """What ``Store`` wrote: ``facts`` as JSON, and values made of its trees."""

    def __init__(self, folder: Path, name: str) -> None:
        self.facts = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        self._file = folder / f"{name}.npz"
        self._arrays: Any = None

    def value(self, tree: Any) -> Any:
        """The value of a tree; arrays are new ones with the strides they had."""
        if not isinstance(tree, dict):
            return tree
        if "array" in tree:
            return self._array(tree)
        if "float" in tree:
            return float.fromhex(tree["float"])
        if "complex" in tree:
            return complex(*map(float.fromhex, tree["complex"]))
        if "list" in tree:
            return [self.value(item) for item in tree["list"]]
        if "tuple" in tree:
            return tuple(self.value(item) for item in tree["tuple"])
        if "dict" in tree:
            return {name: self.value(item) for name, item in tree["dict"]}
        raise ValueError(f"an object of type {tree['other']} was passed, which a recording does not hold")

    def _array(self, tree: Mapping[str, Any]) -> Any:
        import numpy

        if self._arrays is None:
            with numpy.load(self._file, allow_pickle=False) as archive:
                self._arrays = dict(archive)
        array = _laid_out(numpy, self._arrays[tree["array"]], tree["strides"])
        if tree["framework"] == "numpy":
            return array
        import torch

        tensor = torch.from_numpy(array)
        if tree["dtype"] in _FOREIGN:
            tensor = tensor.view(getattr(torch, tree["dtype"]))
        return tensor.requires_grad_() if tree["requires_grad"] else tensor


def _laid_out(numpy: Any, array: Any, strides: list[int]) -> Any:
    """A copy with these strides, in elements."""
    last = [(extent - 1) * abs(stride) for extent, stride in zip(array.shape, strides)]
    memory = numpy.zeros(1 + sum(last) if array.size else 1, array.dtype)
    first = sum(reach for reach, stride in zip(last, strides) if stride < 0)
    steps = [stride * array.dtype.itemsize for stride in strides]
    result = numpy.lib.stride_tricks.as_strided(memory[first if array.size else 0 :], array.shape, steps)
    result[...] = array
    return result


def random_state() -> dict[str, Any]:
    """State of the generators of Python, NumPy and torch (host) in this process, as far as they are imported."""
    version, numbers, gauss = random.getstate()
    state: dict[str, Any] = {"python": [version, list(numbers), gauss]}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        state["numpy"] = list(numpy.random.get_state())
    if torch is not None:
        state["torch"] = torch.get_rng_state()
    return state


def set_random_state(state: Mapping[str, Any]) -> None:
    """The reverse; generators that the state does not know stay as they are."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    if "numpy" in state:
        import numpy

        numpy.random.set_state(tuple(state["numpy"]))
    if "torch" in state:
        import torch

        torch.set_rng_state(state["torch"])
