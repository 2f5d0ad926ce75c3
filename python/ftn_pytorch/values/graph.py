# SPDX-License-Identifier: MIT
"""All that the names of a script lead to, as a graph: what is in each value, and a name for each that lasts.

A node is a value that can change, or that leads to such. Two graphs of one script are compared by identity: what is the
same object in the same place has not changed there, and what is in it is told by its own node. The name of a node is
the first way to it. A script that was just loaded has the same names in each process.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from enum import EnumMeta
from types import BuiltinMethodType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any, NamedTuple

from ..system import private_names
from . import settings, user_objects
from .code_names import codes_in, may_import, names_in
from .contents import (
    DEFAULT,
    IN,
    fields_in,
    has_fields_alone,
    is_aside,
    is_of_torchscript,
    is_record,
    items_in,
    keeps_state,
    mark_of,
    memory_of,
    parts_in_c,
    shows_others,
)
from .held import EMPTY, content, fields_of, shown_apart
from .kinds import ATOMS, Kind, is_of_kit, kind_of
from .walk import WRAPPED

CODE = (Kind.FUNCTION, Kind.CLASS, Kind.NAMESPACE, Kind.INSTALLED)

LAYERS = ".(layers)"
"""The way from a network to the dict of its layers."""


class Node:
    """A value, and what was in it when it was looked at."""

    __slots__ = (
        *("value", "kind", "type", "fields", "items", "mark", "parent", "key", "ways"),
        *("keeps_itself", "is_closed", "is_hidden"),
    )

    def __init__(self, value: Any, kind: Kind, parent: Node | None, key: str) -> None:
        self.value, self.type, self.kind, self.parent, self.key = value, type(value), kind, parent, key
        self.fields: dict[Any, Any] = {}
        self.items: list[Any] | None = None
        """Of a dict first all keys, then all values."""
        self.mark: Any = None
        """What tells that something has changed that cannot be looked into."""
        self.ways = 1
        self.keeps_itself = False
        """It has a state, and is no network or optimizer."""
        self.is_closed = False
        """Reached only through what keeps its own state, and no code."""
        self.is_hidden = False
        """Reached only through a set, which has another order in each process: its name does not last."""


class Place(NamedTuple):
    """A field of a node."""

    node: Node
    key: Any


_of_scripts: weakref.WeakValueDictionary[int, Graph] = weakref.WeakValueDictionary()


def after_load(namespace: dict[str, Any], aside: str) -> Graph:
    """What the names of a script lead to now, right after its load; see ``known``."""
    _of_scripts[id(namespace)] = made = Graph(namespace, aside=aside)
    return made


def known(namespace: Mapping[str, Any]) -> Graph | None:
    """The graph after the load of a script with these names, None if this library has not loaded it."""
    found = _of_scripts.get(id(namespace))
    return found if found is not None and found.root.value is namespace else None


class Graph:
    """What some names lead to. ``skipped``: paths that are not followed. Names of a script that begin with ``aside``
    are followed, and are no fields.
    """

    def __init__(self, namespace: dict[str, Any], skipped: frozenset[str] = frozenset(), aside: str = "") -> None:
        self.nodes: dict[int, Node] = {}
        self.owned: set[int] = set()
        """Parts of networks and optimizers, which these keep."""
        self.hooks: set[int] = set()
        self.lists: dict[int, list[Any]] = {}
        """In which each optimizer has its groups."""
        self.memories: dict[int, int] = {}
        """Where the memory of each tensor begins."""
        self.owners: dict[int, set[int]] = {}
        """Which networks have a parameter themselves."""
        self.names: set[str] = set()
        """What code of the user mentions."""
        self.modules: dict[str, ModuleType] = {}
        """The user's that can be imported, beside the script, by name."""
        self.packages: set[str] = set()
        """Modules of packages that names of the user's modules stand for."""
        self._skipped, self._aside = skipped, aside
        self._has_state: Callable[[type], bool] = functools.cache(keeps_state)
        self._plain: set[type] = set()
        self._closed: list[Node] = []
        self.root = self.nodes[id(namespace)] = Node(namespace, Kind.NAMESPACE, None, "")
        self._todo: deque[Node] = deque([self.root])
        self._run()
        for node in self._closed:
            self._look_into(node)
        self._run()
        self.settings = settings.current(self.packages, self.names)

    def node_of(self, value: Any) -> Node | None:
        found = self.nodes.get(id(value))
        return found if found is not None and found.value is value else None

    def groups_of(self, optimizer: Node) -> list[Any]:
        """The groups that an optimizer had."""
        return self.nodes[id(self.lists[id(optimizer.value)])].items or []

    def knows(self, code: Any) -> bool:
        """True for a function or class that code of the user mentions, and for the class of what is there."""
        return getattr(code, "__name__", "") in self.names or any(node.type is code for node in self.nodes.values())

    # ---- names

    @functools.cached_property
    def named(self) -> dict[str, Node]:
        """All nodes by name. An object that only a set leads to has none."""
        found: dict[str, Node] = {}
        self._names: dict[int, str] = {}
        for node in self.nodes.values():
            name = label = self._label(node)
            number = 2
            while name in found:
                name, number = f"{label}~{number}", number + 1
            self._names[id(node.value)] = name
            if not node.is_hidden:
                found[name] = node
        return found

    def name_of(self, node: Node) -> str:
        _ = self.named
        return self._names[id(node.value)]

    def _label(self, node: Node) -> str:
        if node.parent is None:
            return ""
        if node.kind is Kind.NAMESPACE:
            return str(node.value.get("__name__", ""))
        if node.kind in (Kind.FUNCTION, Kind.CLASS) and hasattr(node.value, "__qualname__"):
            return str(node.value.__qualname__).rpartition("<locals>.")[2]
        return self._names[id(node.parent.value)] + node.key if node.key[:1] in "./" else node.key

    def path(self, node: Node) -> str:
        """The way to a node, for messages and for what is skipped."""
        parts = []
        while node.parent is not None and node.key[:1] in "./":
            parts.append(node.key)
            node = node.parent
        return (self._label(node) + "".join(reversed(parts))).removeprefix(".")

    def place(self, node: Node, key: Any) -> str:
        """The path of a field."""
        name = self.name_of(node)
        if isinstance(key, tuple):
            return _in_function(key, name)
        return f"{name}.{key}" if name else key

    def find(self, path: str) -> Place | None:
        """The field that a path is of, also one that is not there yet."""
        after, _, name = path.rpartition(".")
        key: Any = name
        if after not in self.named or (not after and not name.isidentifier()):
            before, _, after = path.rpartition(" in ")
            key = (DEFAULT, before.removeprefix(DEFAULT).strip()) if before.startswith(DEFAULT) else (IN, before)
        node = self.named.get(after)
        is_private = isinstance(key, str) and (not key or (key.startswith("__") and key.endswith("__")))
        return None if node is None or is_private else Place(node, key)

    # ---- the walk

    def _run(self) -> None:
        while self._todo:
            node = self._todo.popleft()
            if node.type in self._plain:
                self._look_into_plain(node)
            elif not node.keeps_itself:
                self._look_into(node)
            elif not is_of_kit(node.type):
                self._closed.append(node)

    def _look_into(self, node: Node) -> None:
        value, kind = node.value, node.kind
        if is_aside(value):
            return
        node.fields, node.items, node.mark = self.fields_of(node), items_of(node), mark_of(value, kind)
        if kind is Kind.TENSOR and (begin := memory_of(value)):
            self.memories[id(value)] = begin
        for key, part in self._parts(node):
            self._meet(part, node, key)
        for name, each in node.fields.items():
            if type(each) not in ATOMS:
                self._meet(each, node, name if node.parent is None else f".{name}" if type(name) is str else None, name)
        if node.items and not set(map(type, node.items)) <= ATOMS:
            self._meet_items(node)
        if kind is Kind.OBJECT and has_fields_alone(node.type):
            self._plain.add(node.type)

    def _look_into_plain(self, node: Node) -> None:
        """The same for an object of a class of which one was looked into, and that has fields alone."""
        node.fields, node.mark = fields_of(node.value).copy(), ...
        for name, each in node.fields.items():
            if type(each) not in ATOMS:
                self._meet(each, node, f".{name}", name)

    def fields_of(self, node: Node) -> dict[Any, Any]:
        """What is in the fields of a node now."""
        found = fields_in(node.value, node.kind)
        if node.parent is None and self._aside:
            return {name: each for name, each in found.items() if not name.startswith(self._aside)}
        return found

    def _meet_items(self, node: Node) -> None:
        items: Any = node.items
        if isinstance(node.value, dict):
            half = len(items) // 2
            for number, (key, each) in enumerate(zip(items[:half], items[half:])):
                if type(each) not in ATOMS:
                    self._meet(each, node, f"/{shown_apart(key, number)}")
                if type(key) not in ATOMS:
                    self._meet(key, node, f"/(key {number})")
            return
        is_set = isinstance(node.value, set)
        for number, each in enumerate(items):
            if type(each) not in ATOMS:
                met = self._meet(each, node, f"/{number}")
                if is_set and met is not None and met.ways == 1:
                    met.is_hidden = met.kind not in CODE

    def _meet(self, value: Any, parent: Node, key: str | None, field: Any = None) -> Node | None:
        if key is None:
            key = _in_function(field, self._label(parent))
        if self._skipped and self._path_of(parent, key, field) in self._skipped:
            return None
        kind: Kind | None = None
        if isinstance(value, ModuleType):
            if not user_objects.is_own_module(value.__name__):
                self.packages.add(value.__name__)
                return None
            if vars(value) is not self.root.value and sys.modules.get(value.__name__) is value:
                self.modules[value.__name__] = value
            value, kind = vars(value), Kind.NAMESPACE
        elif type(value) in self._plain:
            kind = Kind.OBJECT
        known = self.nodes.get(id(value))
        if known is not None:
            known.ways += 1
            known.is_hidden = False
            return known
        kind = kind or (Kind.UNKNOWN if is_record(value) else kind_of(value))
        if kind is Kind.CONSTANT and not fields_of(value):
            return None
        if kind is Kind.INSTALLED and not isinstance(value, (FunctionType, BuiltinMethodType, MethodWrapperType)):
            return None
        node = self.nodes[id(value)] = Node(value, kind, parent, key)
        node.keeps_itself = kind not in (Kind.MODULE, Kind.OPTIMIZER, *CODE) and self._has_state(node.type)
        node.is_closed = (parent.is_closed or parent.keeps_itself) and kind not in CODE
        self._todo.append(node)
        return node

    def _path_of(self, parent: Node, key: str, field: Any) -> str:
        if isinstance(field, tuple):
            return key
        above = self._label(parent) if parent.kind in CODE else self.path(parent)
        return (above + key).removeprefix(".")

    def _parts(self, node: Node) -> Iterator[tuple[str, Any]]:
        """What a node leads to and cannot be given another one of."""
        value, kind = node.value, node.kind
        if kind is Kind.NAMESPACE:
            if node.parent is None and self._aside:
                yield from ((name, each) for name, each in value.items() if name.startswith(self._aside))
        elif kind in (Kind.FUNCTION, Kind.INSTALLED):
            yield from _parts_of_code(value, kind)
            if isinstance(value, FunctionType) and kind is Kind.FUNCTION:
                yield from self._modules_of(value)
        elif kind is Kind.CLASS:
            yield from ((f".{each.__name__}", each) for each in value.__bases__ if kind_of(each) is Kind.CLASS)
            if isinstance(value, EnumMeta):
                members: Any = value.__members__.values()
                yield from ((f".{each._name_}", each) for each in members)
        elif kind in (Kind.CONTAINER, Kind.CONSTANT):
            if isinstance(value, (tuple, frozenset)):
                yield from ((f"/{number}", each) for number, each in enumerate(value) if type(each) not in ATOMS)
        elif kind is Kind.MODULE:
            yield from self._of_network(value)
        elif kind is Kind.OPTIMIZER:
            yield from self._of_optimizer(value)
        elif kind is Kind.UNKNOWN and shows_others(node.type):
            yield from ((".(inside)", each) for each in parts_in_c(value) if type(each) not in ATOMS)
        if kind not in CODE and user_objects.is_own_module(node.type.__module__):
            yield ".__class__", node.type

    def _modules_of(self, function: FunctionType) -> Iterator[tuple[str, Any]]:
        """The user's modules that a function is of, and that its code may import."""
        space, names = function.__globals__, set(names_in(function.__code__))
        names.update(each for code in codes_in(function.__code__) for each in code.co_consts if type(each) is str)
        self.names |= names
        own, package = str(space.get("__name__", "")), space.get("__package__") or ""
        for name in (own, *sorted(names), *(f"{package}.{each}" for each in sorted(names) if package)):
            there = sys.modules.get(name)
            if isinstance(there, ModuleType) and (vars(there) is space or name != own and self._means(there, function)):
                yield there.__name__, there

    def _means(self, module: ModuleType, function: FunctionType) -> bool:
        """A variable may have the name of what is in the checkpoints of another script of the program."""
        others = [each for each in list(_of_scripts.values()) if each.root.value is not self.root.value]
        found = (vars(module) is each.root.value or each.modules.get(module.__name__) is module for each in others)
        return not any(found) or may_import(function.__code__, module.__name__)

    def _of_network(self, value: Any) -> Iterator[tuple[str, Any]]:
        parameters, buffers, layers = private_names.tables_of(value)
        passing = private_names.passing_buffers(value)
        for name, each in (*parameters.items(), *buffers.items()):
            if each is not None and name not in passing:
                self.owned.add(id(each))
                self.owners.setdefault(id(each), set()).add(id(value))
                yield f".{name}", each
        for name, each in layers.items():
            if each is not None:
                self.owned.add(id(each))
                yield f".{name}", each
        if not is_of_torchscript(value):
            yield LAYERS, layers
        yield from self._hooks_of(value)

    def _of_optimizer(self, value: Any) -> Iterator[tuple[str, Any]]:
        self.owned.update(map(id, (value.param_groups, value.state)))
        self.lists[id(value)] = value.param_groups
        yield ".param_groups", value.param_groups
        for group in value.param_groups:
            self.owned.update((id(group), id(group["params"])))
            self.owned.update(id(each) for key, each in group.items() if key != "params")
        yield from self._hooks_of(value)

    def _hooks_of(self, value: Any) -> Iterator[tuple[str, Any]]:
        for number, each in enumerate(private_names.hooks_of(value)):
            self.hooks.add(id(each))
            yield f".(hooks {number})", each


def _in_function(key: tuple[str, str], label: str) -> str:
    return f"{key[1]} in {label}" if key[0] == IN else f"{DEFAULT} {key[1]} in {label}"


def _parts_of_code(value: Any, kind: Kind) -> Iterator[tuple[str, Any]]:
    if isinstance(value, MethodType):
        yield ".__func__", value.__func__
        yield ".__self__", value.__self__
    elif isinstance(value, functools.partial):
        yield ".func", value.func
        yield from ((f"/{number}", each) for number, each in enumerate(value.args))
        yield ".keywords", value.keywords
    elif isinstance(value, (BuiltinMethodType, MethodWrapperType)):
        if not isinstance(value.__self__, (ModuleType, type, type(None))):
            yield ".__self__", value.__self__
    elif isinstance(value, weakref.ReferenceType):
        yield ".()", weakref.ReferenceType.__call__(value)
    elif isinstance(value, FunctionType):
        if (wrapped := vars(value).get("__wrapped__")) is not None:
            yield ".__wrapped__", wrapped
        if kind is Kind.INSTALLED:
            known = (Kind.FUNCTION, Kind.CLASS, Kind.OBJECT, Kind.MODULE, Kind.OPTIMIZER, Kind.CONTAINER)
            contents = (content(cell) for cell in value.__closure__ or ())
            yield from ((".(inside)", each) for each in contents if each is not EMPTY and kind_of(each) in known)
    else:
        for name in WRAPPED:
            if (inner := getattr(value, name, None)) is not None and inner is not value:
                yield f".{name}", inner


def items_of(node: Node) -> list[Any] | None:
    """The items of a node; names of modules are fields."""
    return None if node.kind is Kind.NAMESPACE else items_in(node.value)
