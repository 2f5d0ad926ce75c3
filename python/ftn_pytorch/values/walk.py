# SPDX-License-Identifier: MIT
"""One walk over what code can reach: names, closures, defaults, fields, items, and what they lead to.

``kind_of`` says what a value is to those who keep promises about it, ``Walk`` finds the values. Recording, checkpoints
and all others that have to know what a script holds ask them, and decide for themselves what to do with each kind.
Nothing here calls code of the values that it looks at.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ..system import private_names
from . import user_objects
from .code_names import codes_in, globals_in, named_by, names_in
from .held import CACHED, EMPTY, content, dict_of_class, fields_of, fields_of_modules, results_in, shown, slots_of
from .kinds import Kind, base_of, is_simple, kind_of, qualities

__all__ = ["By", "Edge", "Kind", "Walk", "kind_of"]

# of classes: nothing that a call looks at
CLASS_ONLY = frozenset(vars(type("", (), {}))) | frozenset(
    ("__annotations__", "__qualname__", "__static_attributes__", "__firstlineno__", "__orig_bases__", "__parameters__")
    + ("__dataclass_fields__", "__dataclass_params__", "__abstractmethods__", "_abc_impl")
)
WRAPPED = ("fget", "fset", "fdel", "__func__", "func", "__wrapped__")
# Who asks for one of these gets all fields.
WHOLE = frozenset(("__dict__", "__getstate__", "__reduce__", "__reduce_ex__", "__dir__"))
LARGE = 1000
"""Items of a container that are too many to be watched."""
_TERMINAL = frozenset(("stdin", "stdout", "stderr"))


class By:
    """How a value is reached."""

    GLOBAL = "global"
    CELL = "cell"
    DEFAULT = "default"
    FIELD = "field"
    ITEM = "item"
    PART = "part"
    """Of what cannot be given another one: the function of a method, an item of a tuple, the class of an object."""


class Edge(NamedTuple):
    """One way to a value."""

    holder: Any
    """The dict, list, cell or object that holds it."""
    key: Any
    """Name, key or number in the holder."""
    value: Any
    path: str
    """As a user would write it: "state.step", "history[3]"."""
    by: str


class Walk:
    """The edges from some roots on, breadth first. Each value is entered once; every edge is told.

    ``is_narrow``: fields of objects of a user's own classes, their methods and names of own modules are put aside,
    until ``read`` or ``ran`` say that they matter, and the walk goes on. ``skipped``: paths that are not followed.
    ``enters`` tells whether a value is looked into. ``is_dotted``: paths are "nets.0" and not "nets[0]".
    """

    def __init__(
        self,
        roots: Mapping[str, Any] | Iterable[tuple[str, Any]],
        is_narrow: bool = False,
        skipped: frozenset[str] = frozenset(),
        enters: Callable[[Any, Kind], bool] = lambda value, kind: True,
        is_dotted: bool = False,
    ) -> None:
        self.names: set[str] = set()
        """What the code on the way mentions."""
        self.codes: set[CodeType] = set()
        """Code on the way, without that of installed packages."""
        self.entered: dict[int, tuple[Any, str, Kind]] = {}
        """Each value that was entered, with the path by which it was first reached."""
        self._is_narrow, self._is_dotted = is_narrow, is_dotted
        self._skipped, self._enters = skipped, enters
        self._aside: dict[int, dict[Any, Edge]] = {}
        """By the identity of an object, a class or a module."""
        self._methods: dict[CodeType, list[Edge]] = {}
        self._spaces: dict[tuple[CodeType, int], dict[str, Any]] = {}
        self._modules: dict[int, tuple[ModuleType, set[str]]] = {}
        self._todo: deque[tuple[Any, str]] = deque()
        pairs = roots.items() if isinstance(roots, Mapping) else roots
        self._released = [Edge(None, name, value, name, By.GLOBAL) for name, value in pairs]

    def __iter__(self) -> Iterator[Edge]:
        while self._released:
            released, self._released = self._released, []
            yield from self._told(released)
            while self._todo:
                value, path = self._todo.popleft()
                if id(value) not in self.entered:
                    kind = kind_of(value)
                    self.entered[id(value)] = (value, path, kind)
                    if self._enters(value, kind):
                        yield from self._told(self._edges(value, path, kind))
            self._released += self._mentioned()

    def is_aside(self, value: Any) -> bool:
        """Whether fields of a value are told only when they are read."""
        return id(value) in self._aside

    def read(self, value: Any, name: str) -> bool:
        """An attribute was asked for; true if that is new."""
        if (aside := self._aside.get(id(value))) is None:
            return False  # it was made after the walk began
        found = list(aside.values()) if name in WHOLE else [aside[name]] if name in aside else []
        for edge in found:
            del aside[edge.key]
        for each in type(value).__mro__:
            if (method := self._aside.get(id(each), {}).pop(name, None)) is not None:
                found.append(method)
        self._released += found
        return bool(found)

    def read_all(self) -> None:
        """Any attribute may have been read."""
        for aside in self._aside.values():
            self._released += aside.values()
            aside.clear()

    def ran(self, code: CodeType, space: dict[str, Any]) -> bool:
        """Code was called that looks its names up in ``space``; false if nothing leads to it."""
        # Classes of one function that makes them share their code, and so may classes that were met later.
        found = self._methods.pop(code, [])
        if not found and code in self.codes:
            return True
        asked = space.get("__getattr__")
        if not found and isinstance(asked, FunctionType) and asked.__code__ is code:
            found = [Edge(space, "__getattr__", asked, "__getattr__", By.GLOBAL)]  # of a module, which C calls
        self._released += found
        return bool(found)

    def ran_in_package(self, code: CodeType, space: dict[str, Any]) -> None:
        """Code of an installed package was called: what it looks up there may change, other than code."""
        if (code, id(space)) in self._spaces:  # equal code may stand in two modules
            return
        self._spaces[code, id(space)] = space
        self.codes.add(code)
        found = space.get(code.co_name)
        if isinstance(found, FunctionType) and found.__code__ is code:
            self._released.append(Edge(space, None, found, code.co_name, By.PART))
        names = [name for name in globals_in(code) if name in space and _may_change(space[name])]
        self._released += (_of_module(space, name) for name in names)

    def looked_up(self, space: dict[str, Any], name: str) -> None:
        """A global was asked for by its name."""
        if name in space:
            self._released.append(Edge(space, name, space[name], name, By.GLOBAL))

    def _told(self, edges: Iterable[Edge]) -> Iterator[Edge]:
        for edge in edges:
            if edge.path not in self._skipped:
                if not is_simple(edge.value):
                    self._todo.append((edge.value, edge.path))
                yield edge

    def _put_aside(self, value: Any, edges: Iterable[Edge]) -> None:
        self._aside.setdefault(id(value), {}).update((edge.key, edge) for edge in edges)

    def _edges(self, value: Any, path: str, kind: Kind) -> Iterable[Edge]:
        if kind is Kind.FUNCTION:
            return self._function(value, path)
        if kind is Kind.CLASS:
            return self._class(value, path)
        if isinstance(value, ModuleType) and (kind is Kind.NAMESPACE or user_objects.is_of_package(value.__name__)):
            if self._is_narrow:
                self._put_aside(value, (_of_module(fields_of(value), name) for name in list(fields_of(value))))
            else:
                self._modules[id(value)] = (value, set())
            return ()
        if kind is Kind.INSTALLED:
            return self._installed(value, path)
        if kind is Kind.CONTAINER:
            return self._items(value, path)
        if kind in (Kind.OBJECT, Kind.SCHEDULER):
            return self._object(value, path, kind)
        if kind is Kind.MODULE:
            return self._module(value, path)
        if kind is Kind.OPTIMIZER:
            return self._optimizer(value, path)
        if kind in (Kind.TENSOR, Kind.CONSTANT):
            is_of_class = kind is Kind.TENSOR and self._is_narrow
            own = [Edge(value, "__class__", type(value), type(value).__name__, By.PART)] if is_of_class else []
            return [*own, *self._fields(value, path)]
        return ()

    # ---- code

    def _function(self, value: Any, path: str) -> Iterator[Edge]:
        if isinstance(value, MethodType):
            yield Edge(value, "__func__", value.__func__, path, By.PART)
            yield Edge(value, "__self__", value.__self__, _joined(path, "self"), By.PART)
            return
        if not isinstance(value, FunctionType):
            yield from self._wrapper(value, path)
            return
        own = user_objects.is_own_module(value.__globals__.get("__name__", ""))
        name = value.__name__
        if own:
            self.codes.update(codes_in(value.__code__))
            self.names.update(names_in(value.__code__, texts=not self._is_narrow))
        for variable, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            if (held := content(cell)) is not EMPTY or self._is_narrow:
                yield Edge(cell, "cell_contents", held, variable, By.CELL)
        for number, default in enumerate(value.__defaults__ or ()):
            yield Edge(value, number, default, f"a default of {name}", By.DEFAULT)
        for key, default in (value.__kwdefaults__ or {}).items():
            yield Edge(value.__kwdefaults__, key, default, f"the default of {key} in {name}", By.DEFAULT)
        for key, each in vars(value).items():
            yield Edge(vars(value), key, each, path if key == "__wrapped__" else _joined(name, key), By.FIELD)
        if own:
            for key in globals_in(value.__code__):
                if key in value.__globals__:
                    yield Edge(value.__globals__, key, value.__globals__[key], key, By.GLOBAL)
            for key in named_by(value.__code__, "IMPORT_NAME"):
                if isinstance(module := sys.modules.get(key), ModuleType):
                    yield Edge(sys.modules, key, module, key, By.GLOBAL)

    def _wrapper(self, value: Any, path: str) -> Iterator[Edge]:
        """functools.partial and lru_cache, property, staticmethod and their like, weak references."""
        if isinstance(value, weakref.ReferenceType):
            yield Edge(value, None, weakref.ReferenceType.__call__(value), path, By.PART)
            return
        if isinstance(value, functools.partial):
            for name in ("func", "args", "keywords"):
                yield Edge(value, name, getattr(value, name), _joined(path, name), By.FIELD)
        if self._is_narrow and type(value) is CACHED:
            for each in results_in(value):
                yield Edge(value, None, each, f"a result of {path}", By.PART)
        yield from self._fields(value, path)
        for name in WRAPPED:
            inner = getattr(value, name, None)
            if inner is not None and inner is not value:
                yield Edge(value, name, inner, path, By.PART)

    def _installed(self, value: Any, path: str) -> Iterator[Edge]:
        """Of code that comes with Python or a package only what a user has given to it."""
        if isinstance(value, ModuleType):
            self._modules[id(value)] = (value, set())
        elif isinstance(value, FunctionType):
            # what its closure holds beside that is the business of the package
            opaque = (Kind.UNKNOWN, Kind.ARRAY, Kind.GENERATOR)
            for edge in self._function(value, path):
                if edge.by == By.FIELD or kind_of(edge.value) not in opaque:
                    yield edge
        elif isinstance(value, type) and self._is_narrow and user_objects.is_of_package(value.__module__):
            fields = dict_of_class(value)
            for each in value.__bases__:
                yield Edge(value, "__bases__", each, each.__name__, By.PART)
            for name, each in list(fields.items()):
                if name not in CLASS_ONLY and _may_change(each):
                    yield Edge(fields, name, each, _joined(path, name), By.FIELD)
        elif isinstance(value, BuiltinMethodType) and not isinstance(value.__self__, (ModuleType, type, type(None))):
            yield Edge(value, "__self__", value.__self__, _joined(path, "__self__"), By.PART)
        elif type(value) is operator.methodcaller:
            yield Edge(value, None, value.__reduce__(), path, By.PART)
        if value is os.getenv:
            yield Edge(vars(os), "environ", os.environ, "os.environ", By.PART)

    def _class(self, value: type, path: str) -> Iterator[Edge]:
        for each in value.__bases__:
            yield Edge(value, "__bases__", each, each.__name__, By.PART)
        yield Edge(value, "__class__", type(value), type(value).__name__, By.PART)
        fields = dict_of_class(value)
        for name, each in list(fields.items()):
            if name in CLASS_ONLY and not (self._is_narrow and name == "__annotations__"):
                continue
            edge = Edge(fields, name, each, _joined(path, name), By.FIELD)
            codes = _codes_of(each) if self._is_narrow and kind_of(each) is Kind.FUNCTION else ()
            for code in codes:
                self._methods.setdefault(code, []).append(edge)
            if codes:
                self._put_aside(value, [edge])
            else:
                yield edge

    # ---- what holds values

    def _items(self, value: Any, path: str) -> Iterator[Edge]:
        yield from self._contents(value, path)
        yield from self._fields(value, path)

    def _contents(self, value: Any, path: str) -> Iterator[Edge]:
        if isinstance(value, dict):
            for key, each in list(dict.items(value)):
                yield Edge(value, key, each, self._item(path, key), By.ITEM)
                if kind_of(key) is not Kind.CONSTANT:
                    yield Edge(value, key, key, f"a key of {path}", By.PART)
        elif isinstance(value, tuple):
            for number, each in enumerate(tuple.__iter__(value)):
                yield Edge(value, number, each, self._item(path, number), By.PART)
        elif isinstance(value, (list, deque)):
            for number, each in enumerate(list(value) if isinstance(value, deque) else list.__iter__(value)):
                yield Edge(value, number, each, self._item(path, number), By.ITEM)
        else:
            for each in list(set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value)):
                yield Edge(value, each, each, f"an item of {path}", By.PART)

    def _item(self, path: str, key: Any) -> str:
        return f"{path}.{key if is_simple(key) else shown(key)}" if self._is_dotted else f"{path}[{shown(key)}]"

    def _object(self, value: Any, path: str, of: Kind) -> Iterator[Edge]:
        kind = type(value)
        yield Edge(value, "__class__", kind, kind.__name__, By.PART)
        if base_of(kind) is not object:
            yield from self._contents(value, path)
        is_seen = not user_objects.is_made_in_c(kind) and not qualities(kind).asks_itself
        if self._is_narrow and is_seen and of is Kind.OBJECT:
            self._put_aside(value, self._fields(value, path))
        else:
            yield from self._fields(value, path)

    def _fields(self, value: Any, path: str) -> Iterator[Edge]:
        """Also those of tensors, of enumerations, of containers of own classes."""
        fields = fields_of(value)
        for name, each in list(fields.items()):
            yield Edge(fields, name, each, _joined(path, name), By.FIELD)
        for name, each in slots_of(value).items():
            yield Edge(value, name, each, _joined(path, name), By.FIELD)

    def _module(self, value: Any, path: str) -> Iterator[Edge]:
        """A network: layers, parameters and buffers, then its other fields."""
        yield Edge(value, "__class__", type(value), type(value).__name__, By.PART)
        for table in private_names.tables_of(value):
            for name, each in list(table.items()):
                yield Edge(table, name, each, _joined(path, name), By.ITEM)
        kind = type(value)
        is_own = user_objects.is_own_module(kind.__module__) and not qualities(kind).asks_itself
        for name, each in list(fields_of(value).items()):
            if name not in fields_of_modules():
                edge = Edge(vars(value), name, each, _joined(path, name), By.FIELD)
                if self._is_narrow and is_own and kind_of(each) in (Kind.ARRAY, Kind.UNKNOWN):
                    self._put_aside(value, [edge])
                else:
                    yield edge

    def _optimizer(self, value: Any, path: str) -> Iterator[Edge]:
        yield Edge(value, "__class__", type(value), type(value).__name__, By.PART)
        hooks = private_names.hooks_of(value)
        for name, each in list(fields_of(value).items()):
            if name not in ("state", "param_groups") and not any(each is known for known in hooks):
                yield Edge(vars(value), name, each, _joined(path, name), By.FIELD)
        for number, group in enumerate(value.param_groups):
            for key, each in group.items():
                yield Edge(group, key, each, f"{path}.param_groups[{number}][{key!r}]", By.ITEM)
        for parameter, state in list(value.state.items()):
            yield Edge(value.state, parameter, state, f"{path}.state[...]", By.ITEM)

    def _mentioned(self) -> Iterator[Edge]:
        """Names of modules."""
        for module, told in self._modules.values():
            space = vars(module)
            is_own = user_objects.is_own_module(module.__name__)
            for name in sorted((set(space) if is_own else self.names & space.keys()) - told - _TERMINAL):
                told.add(name)
                # A package is known by its functions and classes; what it holds besides may change.
                known = (Kind.INSTALLED, Kind.CONSTANT, Kind.FUNCTION)
                if is_own or kind_of(space[name]) not in known or space[name] is os.getenv:
                    yield _of_module(space, name)


def _may_change(value: Any) -> bool:
    """What a package holds beside code, as far as it can be watched, and its classes, which hold more."""
    kind = kind_of(value)
    if isinstance(value, type) and kind is Kind.INSTALLED:
        return user_objects.is_of_package(value.__module__)
    is_large = kind is Kind.CONTAINER and len(value) > LARGE
    return kind not in (Kind.INSTALLED, Kind.FUNCTION, Kind.ARRAY, Kind.HARMLESS, Kind.UNKNOWN) and not is_large


def _of_module(space: dict[str, Any], name: str) -> Edge:
    return Edge(space, name, space[name], f"{space.get('__name__')}.{name}", By.GLOBAL)


def _codes_of(value: Any) -> list[CodeType]:
    """What runs where a function of a class is called, or what is made of one; empty where that is not known."""
    if isinstance(value, FunctionType):
        return [value.__code__]
    if type(value) not in (staticmethod, classmethod, property, functools.cached_property):
        return []
    return [code for name in WRAPPED for code in _codes_of(getattr(value, name, None))]


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)
