# SPDX-License-Identifier: MIT
"""Tensors that look at one memory: what is written through one is seen through the other, also after a restart."""

from __future__ import annotations

import array
import ctypes
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..values import is_array
from ..values.encoding import TAG, VIEW, Unstorable
from ..values.graph import Graph


class Shared:
    """What was made after the load and shares memory with another tensor."""

    def __init__(self, now: Graph, first: Graph, is_whole: bool) -> None:
        self._now, self._first = now, first
        self._memories: dict[int, str] = {}
        groups: dict[int, list[Any]] = defaultdict(list)
        for node in now.nodes.values():
            if begin := now.memories.get(id(node.value)):
                groups[begin].append(node.value)
        self._groups = {
            begin: each for begin, each in groups.items() if len(_overlapping(map(_span, each))) < len(each)
        }
        self._across = set() if is_whole else _across(now)

    def require_as_before(self, value: Any, name: str) -> None:
        """Unstorable if a tensor shares memory, or is a parameter of other networks, since a call of the script."""
        group = self._groups.get(self._now.memories.get(id(value), 0), ())
        before = {self._first.memories.get(id(each)) for each in group if self._first.node_of(each) is not None}
        owners = self._now.owners.get(id(value), set()) ^ self._first.owners.get(id(value), set())
        if len(before) > 1 or any(each in self._first.nodes and each in self._now.nodes for each in owners):
            why = "shares its numbers with another tensor since a call, or is no longer part of its network"
            raise Unstorable(f"{name} {why}. Make it so at the top")

    def told(self, value: Any, path: str, put: Callable[[str, Any], str]) -> dict[str, Any] | None:
        """The tree of a tensor as a view, None for one that is no view, or that the load makes again as one."""
        self._refuse_across(value, path)
        begin = self._now.memories.get(id(value), 0)
        group = self._groups.get(begin)
        if group is None or self._first.node_of(value) is not None:
            return None
        if value.requires_grad or any(each.dtype != value.dtype for each in group):
            raise Unstorable(f"{path} is a tensor that shares memory with another one. Clone it")
        tree = {
            TAG: VIEW,
            "sizes": list(value.shape),
            "strides": list(value.stride()),
            "offset": value.storage_offset(),
        }
        for each in group:
            if (known := self._first.node_of(each)) is not None:
                return {**tree, "of": self._first.name_of(known)}
        if begin not in self._memories:
            whole = value.detach().as_strided((value.untyped_storage().nbytes() // value.element_size(),), (1,), 0)
            self._memories[begin] = put(f"{path} (its memory)", whole)
        return {**tree, "at": self._memories[begin]}

    def told_of_array(self, value: Any, path: str) -> dict[str, Any] | None:
        """The same for an array of NumPy that is a view of one that has a name."""
        self._refuse_across(value, path)
        root = _root(value)
        if root is value:
            return None
        node = self._now.node_of(root) if is_array(root) else None
        if node is None or self._first.node_of(value) is not None:
            return None
        known = self._first.node_of(root)
        if known is None or not root.flags.c_contiguous or value.dtype.hasobject:
            raise Unstorable(f"{path} is a view of another array. Copy it")
        offset = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        tree = {TAG: VIEW, "type": value.dtype.str, "sizes": list(value.shape), "strides": list(value.strides)}
        return {**tree, "offset": offset, "of": self._first.name_of(known)}

    def is_window(self, value: Any) -> bool:
        """True for an array that cannot be written, on one that is told: it shows the numbers of that."""
        root = _root(value)
        is_there = root is not value and is_array(root) and self._now.node_of(root) is not None
        return is_there and self._first.node_of(root) is not None and not value.flags.writeable

    def _refuse_across(self, value: Any, path: str) -> None:
        """What a call has made over the memory of another kind would be made with a memory of its own."""
        if id(value) in self._across and self._first.node_of(value) is None:
            raise Unstorable(f"{path} shares its numbers with a tensor, an array or a buffer of another kind. Copy it")


def _root(array: Any) -> Any:
    """The array that owns the memory of a view, as far as NumPy knows. Between windows and this one stands no array."""
    each = array
    while (each := getattr(each, "base", None)) is not None:
        array = each if is_array(each) else array
    return array


def _across(now: Graph) -> set[int]:
    """Tensors, arrays and buffers of Python that look at the memory of another kind."""
    extents = []
    for node in now.nodes.values():
        if id(node.value) in now.memories:
            storage = node.value.untyped_storage()
            extents.append((storage.data_ptr(), storage.nbytes(), ("tensor", id(node.value))))
        elif is_array(node.value):
            root = _root(node.value)
            extents.append((root.__array_interface__["data"][0], root.nbytes, ("array", id(node.value))))
        elif isinstance(node.value, (bytearray, array.array)) and len(node.value):
            begin = ctypes.addressof(ctypes.c_char.from_buffer(node.value))
            extents.append((begin, memoryview(node.value).nbytes, ("buffer", id(node.value))))
    return {value for each in _overlapping(extents) if len({of for of, _ in each}) > 1 for _, value in each}


def _overlapping(extents: Iterable[tuple[int, int, Any]]) -> list[list[Any]]:
    """What stands at the end of extents of a first byte and a size, by groups that overlap."""
    found: list[list[Any]] = []
    last = 0
    for begin, size, what in sorted(extents):
        if begin >= last:
            found.append([])
        found[-1].append(what)
        last = max(last, begin + size)
    return found


def _span(tensor: Any) -> tuple[int, int, int]:
    """First byte, size, identity."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr(), (last + 1) * tensor.element_size(), id(tensor)
