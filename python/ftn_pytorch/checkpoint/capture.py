# SPDX-License-Identifier: MIT
"""Live values as trees and copies of their arrays, with a record of what is kept, what is not, and why."""

from __future__ import annotations

import enum
import gc
import logging
import pathlib
import re
import threading
import types
from collections.abc import Iterator
from typing import Any

from .. import instances
from ..values import CYCLE, INSTANCE, OBJECT, TAG, Encoder, Unstorable, is_array, is_tensor, loaded
from .objects import access_to, holds, is_module, is_optimizer, label_of

# What a script makes of these comes back when it runs again.
_STATELESS = (types.ModuleType, logging.Logger, pathlib.PurePath, re.Pattern, enum.Enum)
_STATELESS_MODULES = ("__future__", type(threading.Lock()).__module__, "threading", "typing", "torch")


class Collector(Encoder):
    """The trees of live values. ``copies``: arrays are copied, so that nothing changes them before they are written."""

    def __init__(self, copies: bool = True) -> None:
        super().__init__()
        self.left_out: dict[str, str] = {}
        """Fields of objects that are not kept, and why."""
        self.lost: dict[str, str] = {}
        """The same for those that may have had a state, which is worth a warning."""
        self._copies = copies
        self._copied: dict[tuple, Any] = {}
        self._memory: set[int] = set()
        self._objects: dict[str, Any] = {}
        self._takes_objects = True
        self._open: list[int] = []

    def keeps(self, value: Any) -> bool:
        """True for an object with a state that has been met, and for a tensor whose memory has."""
        if is_tensor(value):
            return _memory_of(value) in self._memory | {0}
        return any(each is value for each in self._objects.values())

    def orphans(self) -> Iterator[str]:
        """Tensors that an optimizer changes and that no kept object holds: what they are."""
        for path, optimizer in self._objects.items():
            if is_optimizer(optimizer):
                tensors = [each for group in optimizer.param_groups for each in group["params"]]
                lost = [each for each in tensors if not self.keeps(each)]
                if lost:
                    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
                    yield f"{path} trains {_described(lost[0])}{more}"

    def encode_state(self, value: Any, path: str) -> Any:
        """The tree of what an object gave as its state, in which there are no more objects with a state."""
        before = self._takes_objects, self._open
        self._takes_objects, self._open = False, []
        try:
            return self._encode(value, path)
        finally:
            self._takes_objects, self._open = before

    def _values(self, values: Any, path: str) -> Any:
        # They are made anew when they are restored.
        return self.encode_state(list(values), path)

    def _other(self, value: Any, path: str) -> Any:
        access = access_to(value)
        if access is not None:
            return self._object(value, access.get(), path) if self._takes_objects else None
        return self._instance(value, path) if instances.is_plain(type(value)) else None

    def _object(self, value: Any, state: Any, path: str) -> dict:
        self._objects[path] = value
        tree = {TAG: OBJECT, "type": label_of(value), "state": self.encode_state(state, path)}
        if is_module(value):
            # state_dict does not tell, and dropout depends on it.
            tree["training"] = {name: module.training for name, module in value.named_modules()}
        return tree

    def _instance(self, value: Any, path: str) -> dict:
        if id(value) in self._open:
            return {TAG: CYCLE}
        self._open.append(id(value))
        try:
            named = {}
            for name, each in instances.fields(value).items():
                if (tree := self._field(each, f"{path}.{name}")) is not Ellipsis:
                    named[name] = tree
            content = instances.content(value)
            made = {TAG: INSTANCE, "type": instances.name_of(type(value)), "fields": named}
            return made if content is None else {**made, "content": self._encode(content, path)}
        finally:
            self._open.pop()

    def _field(self, value: Any, path: str) -> Any:
        """The tree of a field, or Ellipsis if it cannot be kept and nothing is seen in it that would be lost."""
        arrays = len(self.arrays)
        try:
            return self._encode(value, path)
        except Unstorable:
            if holds_state(value):
                raise
            for name in list(self.arrays)[arrays:]:
                del self.arrays[name]
            (self.left_out if is_stateless(value) else self.lost)[path] = type_of(value)
            return Ellipsis

    def _tensor(self, value: Any, path: str) -> dict:
        self._memory.add(_memory_of(value))
        return super()._tensor(value, path)

    def _kept(self, array: Any) -> Any:
        if not self._copies:
            return array
        if not is_tensor(array):
            return array.copy()
        if array.layout != loaded("torch").strided:
            return array.clone().cpu()
        # Two names of one tensor, such as tied weights, are one tensor in the file, too.
        key = (array.data_ptr(), array.device, array.dtype, array.shape, array.stride())
        if key not in self._copied:
            self._copied[key] = array.to("cpu", copy=True)
        return self._copied[key]


def holds_state(value: Any) -> bool:
    """True if arrays or objects with a state are seen in a value, also where its class is not the user's own."""

    def is_state(each: Any) -> bool:
        return is_tensor(each) or is_array(each) or access_to(each) is not None

    attributes = {} if is_stateless(value) else getattr(value, "__dict__", {})
    return holds(value, is_state) or any(holds(each, is_state) for each in attributes.values())


def is_stateless(value: Any) -> bool:
    """True for functions, classes, modules and the like."""
    return callable(value) or isinstance(value, _STATELESS) or type(value).__module__ in _STATELESS_MODULES


def type_of(value: Any) -> str:
    return f"of type {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


def _memory_of(tensor: Any) -> int:
    """Where the memory of a tensor begins, 0 if it has none of its own."""
    if tensor.layout != loaded("torch").strided or not tensor.numel():
        return 0
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # tensors with behaviour of their own
        return 0


def _described(tensor: Any) -> str:
    """Shape of a tensor, and its name in the largest module that has it."""
    kind = loaded("torch").nn.Module
    # Not isinstance, which asks objects for their class: some warn when they are asked.
    modules = [each for each in gc.get_objects() if issubclass(type(each), kind)]
    names = [
        (len(name), name, type(module).__name__)
        for module in modules
        for name, each in module.named_parameters()
        if each is tensor
    ]
    text = f"a tensor of shape {tuple(tensor.shape)}"
    return f"{max(names)[1]} of a {max(names)[2]}, {text}" if names else text
