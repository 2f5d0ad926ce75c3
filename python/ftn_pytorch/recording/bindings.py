# SPDX-License-Identifier: MIT
"""What a function depends on besides its arguments, as bindings that are compared before each run of a recording.

``values.walk`` finds what the code of the function can reach. What is understood is bound or is a constant, all else
makes the function unrecordable: ``obstacle`` names it.
"""

from __future__ import annotations

import builtins
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import torch

from ..system import private_names
from ..values.code_names import globals_in, names_in
from ..values.kinds import base_of, is_simple
from ..values.optimizer_settings import is_live, is_setting
from ..values.walk import By, Edge, Kind, Walk, dict_of_class, fields_of, shown

_LARGE = 1000
_CONTROL_FLOW = frozenset(("cond", "while_loop"))
_SETTINGS = frozenset(("param_groups", "get_last_lr", "get_lr"))
ASKING = frozenset(("getattr", "hasattr", "AttributeError", "__dict__", "vars"))

_TEXTS = frozenset(("__name__", "__qualname__", "__doc__", "__module__"))
_ITEMS_OF_FUNCTIONS = frozenset(("__annotations__", "__globals__"))
_WITH_FIELDS = (Kind.CONSTANT, Kind.CONTAINER, Kind.OBJECT, Kind.SCHEDULER)

ITEM, ABSENT, CELL, ITEMS, SLOT, CLASS, FIELDS, FUNCTION, BASES = range(9)
"""Kinds of bindings, those of ``Binding`` in src/recording/validity.hpp."""

ANYTHING = NotImplemented
"""Stands for a value that may become another one."""


class Binding(NamedTuple):
    """Something that must stay as it is. What ``key`` and ``value`` are depends on the kind.

    ITEM, ABSENT: an item of a dict. CELL: content of a cell. ITEMS: all items of a container in their order, keys and
    values in turn for a dict; the key is the class whose iterator tells them. SLOT: an attribute that is no item of a
    dict. CLASS: class of an object. FIELDS: the dict of its fields. FUNCTION: code and defaults. BASES: of a class.
    """

    kind: int
    holder: Any
    key: Any
    value: Any
    path: str


class Facts:
    """What earlier attempts to record a function have shown, and no name tells."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        """Code that runs."""
        self.handed: list[Any] = []
        """Objects whose fields other code may read."""
        self.places: list[Any] = []
        """Where calls leave other tensors, see ``left_values``."""


class Watch:
    """Bindings that must stay what they are, and the objects of torch that were found behind them.

    ``others``: more roots. ``ignored``: paths that do not count.
    """

    def __init__(
        self,
        function: Any,
        others: Iterable[Any] = (),
        facts: Facts | None = None,
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        self.bindings: list[Binding] = []
        self.modules: list[Any] = []
        self.optimizers: list[Any] = []
        self.generators: list[tuple[Any, str]] = []
        self.tensors: list[Any] = []
        self._unseen = ""
        self._followed: dict[int, tuple[Any, str, set[Any]]] = {}
        self._weak: dict[int, tuple[Any, str]] = {}
        self._strong: set[int] = set()
        facts = facts or Facts()
        handed = frozenset(map(id, facts.handed))
        roots = [("", function), *(("an argument", each) for each in others)]
        walk = Walk(roots, is_narrow=True, skipped=ignored, also_run=frozenset(facts.codes), handed=handed)
        for edge in walk:
            self._bind(edge)
        self.names, self.codes = walk.names, walk.codes
        for value, path, kind in walk.entered.values():
            self._look(value, path, kind)
        for target, path in self._weak.values():
            if id(target) not in self._strong and target is not None:
                self._refuse(
                    f"{path} is a weak reference to what a recording would keep alive: use the object by a name"
                )
        for holder, path, keys in self._followed.values():
            self._bind_items(holder, path, keys)
        if walk.names & _SETTINGS:
            self._bind_settings()
        if self.modules:
            for hooks in private_names.hooks_of_all("modules"):
                self._bind_items(hooks, "hooks of all networks")
        if self.optimizers:
            for hooks in private_names.hooks_of_all("optimizers"):
                self._bind_items(hooks, "hooks of all optimizers")

    def obstacle(self) -> str:
        """What cannot be watched, or runs code when a module is called or a gradient is there; or empty."""
        if self._unseen:
            return self._unseen
        if self.modules and any(private_names.hooks_of_all("modules")):
            return "a hook of all networks would not be called"
        if self.optimizers and any(private_names.hooks_of_all("optimizers")):
            return "a hook of all optimizers would not be called"
        for module in self.modules:
            if private_names.has_hooks(module):
                return f"a hook of {type(module).__name__} would not be called"
        for optimizer in self.optimizers:
            if private_names.has_hooks(optimizer):
                return f"a hook of {type(optimizer).__name__} would not be called"
        for parameter in self.parameters():
            if private_names.has_hooks(parameter):
                return "a hook of a parameter would not be called"
        return ""

    def parameters(self) -> Iterator[Any]:
        """Parameters of the modules and of the optimizers, and other leaves of autograd, each once."""
        found = [tensor for tensor in self.tensors if tensor.requires_grad and tensor.is_leaf]
        found += [p for module in self.modules for p in module.parameters(recurse=False)]
        found += [p for optimizer in self.optimizers for group in optimizer.param_groups for p in group["params"]]
        yield from {id(parameter): parameter for parameter in found}.values()

    def reached(self) -> set[int]:
        """Identities of all tensors that names lead to, and of their gradients."""
        found = {id(tensor) for tensor in (*self.tensors, *self.parameters())}
        return found | {id(each.grad) for each in self.parameters() if each.grad is not None}

    # ---- ways to values

    def _bind(self, edge: Edge) -> None:
        if isinstance(edge.holder, weakref.ReferenceType):
            self._weak[id(edge.value)] = (edge.value, edge.path)
        else:
            self._strong.add(id(edge.value))
        if edge.by == By.GLOBAL and edge.holder is not None:
            self._add(ITEM, edge.holder, edge.key, edge.value, edge.path)
        elif edge.by == By.CELL:
            self._add(CELL, edge.holder, None, edge.value, edge.path)
        elif edge.by == By.FIELD:
            if isinstance(edge.holder, dict):
                self._followed_in(edge.holder, edge.path.removesuffix(str(edge.key))).add(edge.key)
            else:
                self._add(SLOT, edge.holder, edge.key, edge.value, edge.path)

    def _followed_in(self, fields: dict[str, Any], path: str) -> set[Any]:
        return self._followed.setdefault(id(fields), (fields, path, set()))[2]

    def _add(self, kind: int, holder: Any, key: Any, value: Any, path: str) -> None:
        self.bindings.append(Binding(kind, holder, key, value, path))

    def _bind_items(self, holder: Any, path: str, keys: set[Any] | None = None) -> None:
        """All items of a container. ``keys``: only these of a dict, and that there are no others."""
        base: Any = base_of(type(holder))
        if issubclass(base, dict):
            pairs = [(key, dict.__getitem__(holder, key)) for key in base.__iter__(holder)]
            values = [each if keys is None or key in keys else ANYTHING for key, each in pairs]
            flat = tuple(part for pair, value in zip(pairs, values) for part in (pair[0], value))
        else:
            flat = tuple(base.__iter__(holder))
        self._add(ITEMS, holder, base, flat, path)

    # ---- values

    def _refuse(self, why: str) -> None:
        self._unseen = self._unseen or why

    def _look(self, value: Any, path: str, kind: Kind) -> None:
        looks: dict[Kind, Callable[[Any, str], None]] = {
            Kind.TENSOR: self._tensor,
            Kind.ARRAY: self._array,
            Kind.GENERATOR: lambda value, path: self.generators.append((value, path)),
            Kind.CONTAINER: self._container,
            Kind.OBJECT: self._object,
            Kind.SCHEDULER: self._object,
            Kind.MODULE: self._module,
            Kind.OPTIMIZER: self._optimizer,
            Kind.FUNCTION: self._function,
            Kind.CLASS: self._class,
            Kind.UNKNOWN: self._unknown,
        }
        if kind in looks:
            looks[kind](value, path)
        if kind in _WITH_FIELDS and type(value).__dictoffset__ and type(value) is not OrderedDict:
            fields = fields_of(value)
            self._add(FIELDS, value, None, fields, f"fields of {path}")
            self._followed_in(fields, f"{path}.")

    def _unknown(self, value: Any, path: str) -> None:
        kind = type(value)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        self._refuse(
            f"{path or 'it'} is of type {name}, whose changes cannot be seen: keep what it holds in tensors, lists, "
            "dicts or objects of your own, use it outside of the recorded function, or name it in ignore= of recorded"
        )

    def _array(self, value: Any, path: str) -> None:
        self._refuse(f"{path} is an array of NumPy, whose changes cannot be seen: make it a tensor")

    def _tensor(self, value: Any, path: str) -> None:
        self.tensors.append(value)
        # an attribute that is not there cannot be read, only asked for
        if id(fields_of(value)) not in self._followed and self.names & ASKING:
            self._bind_items(fields_of(value), f"attributes of {path}")

    def _container(self, value: Any, path: str) -> None:
        base = base_of(type(value))
        if len(value) > _LARGE and not all(isinstance(each, torch.Tensor) for each in value):
            self._refuse(f"{path} has more than {_LARGE} items, too many to be watched; make it a tensor")
        elif not issubclass(base, (tuple, frozenset)):
            self._bind_items(value, path)
            if issubclass(base, defaultdict):
                self._add(SLOT, value, "default_factory", value.default_factory, f"{path}.default_factory")

    def _object(self, value: Any, path: str) -> None:
        if isinstance(value, weakref.finalize):
            self._unknown(value, path)
        self._add(CLASS, value, None, type(value), f"the class of {path}")
        if base_of(type(value)) is not object:
            self._container(value, path)

    def _module(self, module: Any, path: str) -> None:
        if isinstance(module, torch.jit.ScriptModule):
            self._refuse(
                f"{path} is a TorchScript model, whose fields cannot be watched; use the network that it was made of"
            )
            return
        self.modules.append(module)
        self._add(CLASS, module, None, type(module), f"the class of {path}")
        for table in private_names.tables_of(module):
            self._bind_items(table, path)
        for hooks in private_names.hooks_of(module):
            self._bind_items(hooks, f"hooks of {path}")
        self._followed_in(vars(module), f"{path}.")

    def _class(self, value: type, path: str) -> None:
        self._followed_in(dict_of_class(value), f"{path}.")
        self._add(BASES, value, None, value.__mro__, f"bases of {value.__name__}")

    def _function(self, value: Any, path: str) -> None:
        if not isinstance(value, FunctionType):
            return
        name = value.__name__
        held = (value.__code__, value.__defaults__, value.__kwdefaults__)
        self._add(FUNCTION, value, None, held, f"{name}.__code__ or its defaults")
        if value.__kwdefaults__:
            self._bind_items(value.__kwdefaults__, f"defaults of {name}")
        self._add(FIELDS, value, None, vars(value), f"fields of {name}")
        self._followed_in(vars(value), f"{name}.")
        mentioned = set(names_in(value.__code__, texts=False))
        if "torch" in mentioned and (found := mentioned & _CONTROL_FLOW):
            # its compiler does not go together with the modes of a recorder
            self._refuse(f"{name} calls torch.{found.pop()}, which is given functions")
        if "getprofile" in mentioned:
            self._refuse(f"{name} asks for a profiler, and a recorder is one")
        for each in globals_in(value.__code__):
            if each not in value.__globals__:
                self._add(ABSENT, value.__globals__, each, None, each)
                if each in vars(builtins):
                    self._add(ITEM, vars(builtins), each, vars(builtins)[each], each)
        for each in sorted(_ITEMS_OF_FUNCTIONS & self.names):
            self._bind_items(getattr(value, each), f"{name}.{each}")
        for each in sorted(_TEXTS & self.names):
            self._add(SLOT, value, each, getattr(value, each), f"{name}.{each}")

    def _optimizer(self, optimizer: Any, path: str) -> None:
        self.optimizers.append(optimizer)
        self._add(CLASS, optimizer, None, type(optimizer), f"the class of {path}")
        self._followed_in(vars(optimizer), f"{path}.").update(("state", "param_groups"))
        for hooks in private_names.hooks_of(optimizer):
            self._bind_items(hooks, f"hooks of {path}")
        self._bind_items(optimizer.param_groups, f"{path}.param_groups")
        for number, group in enumerate(optimizer.param_groups):
            # other numbers enter a recording as what they are in each call
            keys = {key for key, value in group.items() if not (is_live(optimizer) and is_setting(value))}
            self._bind_items(group, f"{path}.param_groups[{number}]", keys)
        self._bind_items(optimizer.state, f"{path}.state")

    def _bind_settings(self) -> None:
        """The function reads numbers of optimizers itself, so they are constants of the recording."""
        for optimizer in self.optimizers:
            for number, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    if is_setting(value):
                        self._add(ITEM, group, key, value, f"param_groups[{number}][{key!r}]")


def difference(binding: Binding) -> tuple[str, str]:
    """What a binding that no longer holds is about, and the two values, "2 before a call, 3 after it", if plain."""
    if binding.kind == ITEM:
        return binding.path, _told(binding.value, binding.holder.get(binding.key))
    if binding.kind == CELL:
        try:
            return binding.path, _told(binding.value, binding.holder.cell_contents)
        except ValueError:
            return binding.path, ""
    if binding.kind == ITEMS and issubclass(binding.key, (dict, list, deque)):
        return _difference_of_items(binding)
    return binding.path, ""


def _difference_of_items(binding: Binding) -> tuple[str, str]:
    holder, path = binding.holder, binding.path
    count = len(binding.value) // 2 if issubclass(binding.key, dict) else len(binding.value)
    if len(holder) != count:
        return (f"fields of {path[:-1]}" if path.endswith(".") else f"len({path})"), _told(count, len(holder))
    found = changed_items(binding)
    if found is None:
        return f"the order of {path}", ""
    return (found[0][3], _told(*found[0][1:3])) if found else (path, "")


def changed_items(binding: Binding) -> list[tuple[Any, Any, Any, str]] | None:
    """The items of a dict, list or deque that are others now: key, both values and path. None for other keys."""
    base, holder, path = binding.key, binding.holder, binding.path
    is_dict, is_fields = issubclass(base, dict), path.endswith(".")
    if len(holder) != (len(binding.value) // 2 if is_dict else len(binding.value)):
        return None
    now = base.items(holder) if is_dict else enumerate(base.__iter__(holder))
    before = zip(binding.value[::2], binding.value[1::2]) if is_dict else enumerate(binding.value)
    found = []
    for (key, value), (same_key, same) in zip(now, before):
        if key is not same_key and not (is_simple(key) and key == same_key):
            return None
        if same is not ANYTHING and value is not same and not (is_simple(value) and value == same):
            found.append((key, same, value, f"{path}{key}" if is_fields else f"{path}[{shown(key)}]"))
    return found


def _told(before: Any, now: Any) -> str:
    plain = all(isinstance(each, (int, float, str)) for each in (before, now))
    return f"{before!r} before a call, {now!r} after it" if plain else ""
