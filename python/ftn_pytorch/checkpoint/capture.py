# SPDX-License-Identifier: MIT
"""Live values as trees and copies of their arrays, with a record of what is kept, what is not, and why."""

from __future__ import annotations

import concurrent.futures
import enum
import gc
import io
import logging
import pathlib
import re
import threading
import types
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ..values import is_array, is_tensor, loaded, user_objects
from ..values.encoding import CODE, CYCLE, INSTANCE, OBJECT, TAG, Encoder, FindType, Unstorable, find_imported_type
from ..values.kinds import Kind, kind_of
from . import optimizers
from .changes import Changes
from .module_fields import is_field, layers_of
from .stateful import access_to, holds, holds_objects, is_module, is_namespace, is_optimizer, is_trainable, label_of

# What a script makes of these comes back when it runs again.
_STATELESS = (types.ModuleType, logging.Logger, pathlib.PurePath, re.Pattern, enum.Enum)
_STATELESS_MODULES = ("__future__", type(threading.Lock()).__module__, "threading", "typing", "torch")
_FIXED = (type(None), bool, int, float, complex, str, bytes, tuple, frozenset)
# No number depends on them.
_HARMLESS = (io.FileIO, io.BufferedIOBase, io.TextIOWrapper, concurrent.futures.Executor, threading.Thread)
_HARMLESS_NAMES = ("_csv.writer", "csv.DictWriter", "torch.SummaryWriter", "tensorboardX.SummaryWriter")


class Collector(Encoder):
    """The trees of live values. ``copies``: arrays are copied, so that nothing changes them before they are written.

    ``changes``: what code of the script writes to, None where that is not known. ``written``: lines that write to what
    is encoded, by its path. ``transient``: paths of what is left out. ``find_type``: finds classes and functions.
    """

    def __init__(
        self,
        copies: bool = True,
        changes: Changes | None = None,
        written: Mapping[str, str] | None = None,
        transient: frozenset[str] = frozenset(),
        find_type: FindType = find_imported_type,
    ) -> None:
        super().__init__()
        self.left_out: dict[str, str] = {}
        """Fields of objects that are not kept, and why."""
        self.lost: dict[str, str] = {}
        """The same for those that may have had a state, which is worth a warning."""
        self.trees: dict[str, Any] = {}
        """The states of optimizers, by their paths."""
        self._copies = copies
        self._changes, self._written, self._transient = changes, written or {}, transient
        self._find_type = find_type
        self._is_written = False
        self._is_made_anew = False
        self._is_whole = False
        self._copied: dict[tuple, Any] = {}
        self._memory: set[int] = set()
        self._objects: dict[str, Any] = {}
        self._met: dict[int, Any] = {}
        self._takes_objects = True
        self._open: list[int] = []

    def encode(self, value: Any, path: str) -> Any:
        self._is_written = bool(self._written.get(path))
        try:
            return super().encode(value, path)
        except Unstorable as failure:
            failure.line = failure.line or self._written.get(path, "")
            raise
        finally:
            self._is_written = False

    def keeps(self, value: Any) -> bool:
        """True for an object with a state that has been met, and for a tensor whose memory has."""
        if is_tensor(value):
            return _memory_of(value) in self._memory | {0}
        return any(each is value for each in self._objects.values())

    def optimizers(self) -> dict[str, Any]:
        """Those that have been met, by their paths."""
        return {path: self._objects[path] for path in self.trees}

    def has_met(self, value: Any) -> bool:
        """True for what can be changed in place and has been encoded already."""
        return id(value) in self._met

    def orphans(self) -> Iterator[str]:
        """Tensors that an optimizer changes and that no kept object holds: what they are."""
        for path, optimizer in self._objects.items():
            if is_optimizer(optimizer):
                tensors = [each for group in optimizer.param_groups for each in group["params"]]
                lost = [each for each in tensors if not self.keeps(each)]
                if lost:
                    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
                    yield f"{path} trains {_described(lost[0])}{more}"

    def _encode(self, value: Any, path: str) -> Any:
        if type(value) not in _FIXED:
            self._met[id(value)] = value
        return super()._encode(value, path)

    def encode_state(self, value: Any, path: str) -> Any:
        """The tree of what an object gave as its state, in which there are no more objects with a state."""
        before = self._takes_objects, self._open, self._is_made_anew
        self._takes_objects, self._open, self._is_made_anew = False, [], True
        try:
            return self._encode(value, path)
        finally:
            self._takes_objects, self._open, self._is_made_anew = before

    def _values(self, values: Any, path: str) -> Any:
        # They are made anew when they are restored.
        return self.encode_state(list(values), path)

    def _items(self, values: Any, path: str) -> list:
        return self._made_anew(super()._items, values, path)

    def _pairs(self, value: Mapping, path: str) -> list:
        return self._made_anew(super()._pairs, value, path)

    def _mapping(self, value: Mapping, path: str) -> dict:
        return self._made_anew(super()._mapping, value, path)

    def _made_anew(self, encode: Any, value: Any, path: str) -> Any:
        """The tree of a container, which may have other items when it is restored."""
        before, self._is_made_anew = self._is_made_anew, True
        try:
            return encode(value, path)
        finally:
            self._is_made_anew = before

    def _other(self, value: Any, path: str) -> Any:
        access = access_to(value)
        if access is not None:
            if is_optimizer(value):
                optimizers.require_groups(value, path)
            if not self._takes_objects:
                return None
            state = access.get()
            if is_optimizer(value):
                optimizers.require_step(value, state, path)
            return self._object(value, state, path)
        if user_objects.is_plain(type(value)):
            return self._instance(value, path)
        if self._is_written and user_objects.is_own_code(value):
            return self._code(value, path)
        if self._is_written and not self._is_made_anew and is_foreign(value):
            before, self._is_whole = self._is_whole, True
            try:
                return {**self._instance(value, path), "foreign": True}
            finally:
                self._is_whole = before
        return None

    def _code(self, value: Any, path: str) -> dict:
        name = user_objects.name_of(value)
        if self._find_type(name) is not value:
            raise Unstorable(f"{path} is the function {value.__qualname__}, and nothing finds it by this name")
        return {TAG: CODE, "name": name}

    def _factory(self, value: defaultdict, path: str) -> Any:
        name = super()._factory(value, path)
        factory: Any = value.default_factory
        if name is not Ellipsis or not self._takes_objects:
            # What takes a state_dict has the class that it wants.
            return name
        if user_objects.is_own_code(factory) and self._find_type(user_objects.name_of(factory)) is factory:
            return user_objects.name_of(factory)
        if self._is_made_anew:
            raise Unstorable(f"{path} is a defaultdict whose function has no name (write def instead of lambda)")
        return ""

    def _object(self, value: Any, state: Any, path: str) -> dict:
        if id(value) in self._open:
            return {TAG: CYCLE}
        self._open.append(id(value))
        try:
            self._objects[path] = value
            tree = {TAG: OBJECT, "type": label_of(value), "state": self.encode_state(state, path)}
            if is_optimizer(value):
                self.trees[path] = tree["state"]
            if is_module(value):
                # state_dict does not tell, and dropout depends on it.
                tree["training"] = {name: module.training for name, module in value.named_modules()}
                for name, each in value.named_parameters():
                    self._refuse_attributes(each, f"{path}.{name}")
                tree["requires_grad"] = {name: each.requires_grad for name, each in value.named_parameters()}
                tree["gradients"] = {
                    name: self._tensor(each.grad, f"{path}/{name} (its gradient)")
                    for name, each in value.named_parameters()
                    if each.grad is not None
                }
            if is_module(value) or is_optimizer(value):
                tree["fields"] = self._fields_of_layers(value, path)
            return tree
        finally:
            self._open.pop()

    def _fields_of_layers(self, value: Any, path: str) -> dict[str, dict[str, Any]]:
        """Fields of layers beside parameters and buffers, and of an optimizer, that code writes to."""
        found: dict[str, dict[str, Any]] = {}
        for name, layer in layers_of(value):
            for key, each in list(vars(layer).items()):
                place = ".".join(filter(None, (path, name, key)))
                if is_field(layer, key) and self._is_kept_field(layer, key, each):
                    tree = self._field(key, each, place)
                    if tree is not Ellipsis:
                        found.setdefault(name, {})[key] = tree
        return found

    def _is_kept_field(self, layer: Any, name: str, value: Any) -> bool:
        if self._changes is not None:
            return bool(self._why(name, value)) or holds_objects(value) or holds(value, is_trainable)
        return user_objects.is_own_module(type(layer).__module__) and not is_stateless(value)

    def _why(self, name: str, value: Any) -> str:
        return "" if self._changes is None else self._changes.why(value, self._changes.of_field(name))

    def _instance(self, value: Any, path: str) -> dict:
        if id(value) in self._open:
            return {TAG: CYCLE}
        self._open.append(id(value))
        try:
            named = {}
            for name, each in user_objects.fields(value).items():
                if (tree := self._field(name, each, f"{path}.{name}")) is not Ellipsis:
                    named[name] = tree
            content = user_objects.content(value)
            made = {TAG: INSTANCE, "type": user_objects.name_of(type(value)), "fields": named}
            return made if content is None else {**made, "content": self._encode(content, path)}
        finally:
            self._open.pop()

    def _field(self, name: str, value: Any, path: str) -> Any:
        """The tree of a field, or Ellipsis if it is not kept and nothing is seen in it that would be lost."""
        if path in self._transient:
            self.left_out[path] = "transient"
            return Ellipsis
        line, arrays, before = self._why(name, value), len(self.arrays), self._is_written
        if not (line or self._is_made_anew) and _is_of_machine(value):
            self.left_out[path] = type_of(value)
            return Ellipsis
        self._is_written = bool(line) or self._is_whole
        try:
            return self._encode(value, path)
        except Unstorable as failure:
            is_lost = self._is_whole and not is_stateless(value)
            if holds_state(value) or is_lost or (line and not is_harmless(value)):
                failure.line = failure.line or line
                raise
            for array in list(self.arrays)[arrays:]:
                del self.arrays[array]
            (self.left_out if is_stateless(value) else self.lost)[path] = type_of(value)
            return Ellipsis
        finally:
            self._is_written = before

    def _tensor(self, value: Any, path: str) -> dict:
        self._memory.add(_memory_of(value))
        self._refuse_attributes(value, path)
        tree = super()._tensor(value, path)
        if value.is_leaf and value.grad is not None:
            tree["gradient"] = self._tensor(value.grad, f"{path} (its gradient)")
        return tree

    def _refuse_attributes(self, tensor: Any, path: str) -> None:
        """Attributes that a script gives to a tensor are not kept."""
        for name, each in vars(tensor).items() if hasattr(tensor, "__dict__") else ():
            if line := self._why(name, each):
                failure = Unstorable(f"{path}.{name} is an attribute of a tensor")
                failure.line = line
                raise failure

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
    known = is_harmless(value) or isinstance(value, _STATELESS) or type(value).__module__ in _STATELESS_MODULES
    return known or callable(value)


def is_harmless(value: Any) -> bool:
    """True for loggers, open files, locks, progress bars, figures: no number depends on them."""
    kind = type(value)
    name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    is_known = isinstance(value, _HARMLESS) or name in _HARMLESS_NAMES
    return is_known or kind_of(value) is Kind.HARMLESS


def is_foreign(value: Any) -> bool:
    """True for an object of an installed package whose class is written in Python, so that its fields are all."""
    kind = type(value)
    if kind_of(value) is not Kind.OBJECT or user_objects.is_plain(kind) or is_namespace(value) or is_harmless(value):
        return False
    return access_to(value) is None and user_objects.has_fields_only(kind)


def _is_of_machine(value: Any) -> bool:
    """True for what a script is to find anew where it runs, if it does not write to it: devices, paths and the like."""
    torch = loaded("torch")
    kinds = (pathlib.PurePath, enum.Enum) if torch is None else (pathlib.PurePath, enum.Enum, torch.device, torch.dtype)
    return isinstance(value, kinds)


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
