# SPDX-License-Identifier: MIT
"""What among the names of a script is state, and which other places its code writes to.

Other places are variables of enclosing functions, attributes of functions and classes, default arguments, and names of
the user's own modules that the script imports.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from enum import EnumMeta
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ..script.conventions import PREFIX
from ..values import is_array, is_number, is_tensor, user_objects
from ..values.encoding import Unstorable
from ..values.kinds import Kind, kind_of
from ..values.walk import Walk
from .capture import Collector, holds_state, is_harmless, type_of
from .changes import Changes, is_generated
from .stateful import access_to, holds, holds_objects, inside, is_module, is_namespace, is_optimizer, is_trainable
from .writes import IN_PLACE, Event

_CONTAINERS = (list, dict, defaultdict, OrderedDict, Counter, set, deque, bytearray)
_SCALARS = (type(None), bool, int, float, complex, str, bytes, tuple)
_LARGE = 1000  # items of a list of data, in which no function is looked for
_TRANSIENT = "transient"


class Left(dict):
    """Names that are not kept, and why; ``lost`` has those among them that seem to have a state."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: dict[str, str] = {}


class Place(NamedTuple):
    """A place beside the names of a script: what is there, how it is replaced, and what is done to it."""

    value: Any
    put: Callable[[Any], Any]
    events: list[Event]


class Found(NamedTuple):
    """State of a script: values by path, lines that write to them, and what is not kept."""

    values: dict[str, Any]
    written: dict[str, str]
    left: Left


def find(namespace: Mapping[str, Any], changes: Changes, transient: frozenset[str]) -> Found:
    """The names of a script that are state, and those that are not. Modules are neither."""
    seen: set[int] = set()
    found = Found({}, {}, Left())
    for name, value in namespace.items():
        if name.startswith(PREFIX) or (name.startswith("__") and name.endswith("__")):
            continue
        line = changes.why(value, changes.of_global(namespace, name)) or changes.why_inside(value)
        if isinstance(value, ModuleType) or ((inspect.isroutine(value) or isinstance(value, type)) and not line):
            continue
        why = _TRANSIENT if name in transient else _why_not(name, value, line, changes, namespace)
        if why:
            found.left[name] = why
            if why == type_of(value) and (holds_state(value) or inspect.isgenerator(value)):
                found.left.lost[name] = why
        elif not (_is_object(value) and id(value) in seen):
            seen.add(id(value))
            found.values[name] = value
            found.written[name] = line
    return found


def _is_object(value: Any) -> bool:
    return user_objects.is_plain(type(value)) or holds_objects(value)


def _why_not(name: str, value: Any, line: str, changes: Changes, namespace: Mapping[str, Any]) -> str:
    """Why a name is not kept, empty if it is, or if it must be and cannot."""
    if holds_objects(value) or holds(value, is_trainable):
        return ""
    if is_harmless(value):
        return type_of(value)
    if line:
        return ""
    if isinstance(value, _SCALARS) or is_number(value) or kind_of(value) is Kind.CONSTANT:
        if not changes.is_assigned(changes.of_global(namespace, name)):
            is_known = isinstance(value, _SCALARS) or is_number(value)
            return "no function assigns to it" if is_known else type_of(value)
    elif is_tensor(value) or is_array(value) or type(value) in _CONTAINERS or user_objects.is_plain(type(value)):
        if name.isupper():
            return "a constant by its name"
        if user_objects.is_plain(type(value)):
            return ""
    else:
        return type_of(value)
    return "" if _is_storable(value) else type_of(value)


def _is_storable(value: Any) -> bool:
    try:
        Collector(copies=False).encode(value, "")
    except Unstorable:
        return False
    return True


class Places:
    """The places that functions of a script reach, but no name of it: by path, such as "count in step"."""

    def __init__(self, namespace: dict[str, Any], changes: Changes) -> None:
        self._namespace, self._changes = namespace, changes
        self._all: dict[str, Place] = {}
        self._holders: dict[str, Any] = {}
        self._cells: set[int] = set()
        large = frozenset(
            name for name, each in namespace.items() if isinstance(each, _CONTAINERS) and len(each) > _LARGE
        )
        roots = [(name, each) for name, each in namespace.items() if not name.startswith("__")]
        walk = Walk(roots, skipped=large, enters=_is_open)
        deque(walk, maxlen=0)
        for value, path, _ in walk.entered.values():
            if isinstance(value, FunctionType):
                self._function(value)
            elif isinstance(value, type):
                self._class(value)
            elif isinstance(value, MethodType) and user_objects.is_plain(type(value.__self__)):
                self._add(f"__self__ of {value.__func__.__qualname__}", value.__self__, _nowhere, [])
            elif isinstance(value, functools.partial):
                self._partial(value, path)
            elif isinstance(value, ModuleType) and vars(value) is not namespace:
                self._module(value)

    def _function(self, function: FunctionType) -> None:
        if is_generated(function) or not user_objects.is_own_module(function.__globals__.get("__name__", "")):
            return
        label = self._label(function.__qualname__.rpartition("<locals>.")[2], function)
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) in self._cells or variable == "__class__":
                continue
            self._cells.add(id(cell))
            events = self._changes.of_cell(function, variable)
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            put = functools.partial(setattr, cell, "cell_contents")
            self._add(f"{variable} in {label}", content, put, events)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        defaults = function.__defaults__ or ()
        for number, each in enumerate(defaults):
            name = names[len(names) - len(defaults) + number]
            put = functools.partial(_put_default, function, number)
            self._add(f"default of {name} in {label}", each, put, self._changes.of_default(function, name))
        keyword_defaults = function.__kwdefaults__ or {}
        for name, each in keyword_defaults.items():
            put = functools.partial(keyword_defaults.__setitem__, name)
            self._add(f"default of {name} in {label}", each, put, self._changes.of_default(function, name))
        for name, each in vars(function).items():
            if not name.startswith("__"):
                self._add(f"{label}.{name}", each, _putter(function, name), self._changes.of_field(name))

    def _partial(self, value: functools.partial, path: str) -> None:
        # What is given to the function beforehand is there to be changed, if it can be.
        for key, each in (*enumerate(value.args), *value.keywords.items()):
            if isinstance(each, _CONTAINERS) or user_objects.is_plain(type(each)):
                self._add(f"argument {key} of {path}", each, _nowhere, [Event((), IN_PLACE, (path, 0))])

    def _class(self, kind: type) -> None:
        if not user_objects.is_own_module(kind.__module__):
            return
        label = self._label(kind.__qualname__.rpartition("<locals>.")[2], kind)
        if isinstance(kind, EnumMeta):
            members: list[Any] = list(kind.__members__.values())
            for member in {id(each): each for each in members}.values():
                for name, each in vars(member).items():
                    if not name.startswith("_"):
                        put = functools.partial(vars(member).__setitem__, name)
                        self._add(f"{label}.{member._name_}.{name}", each, put, self._changes.of_field(name))
            return
        for name, each in list(vars(kind).items()):
            if not name.startswith("__") and not hasattr(type(each), "__set__"):
                self._add(f"{label}.{name}", each, _putter(kind, name), self._changes.of_class(name))

    def _module(self, module: ModuleType) -> None:
        if not user_objects.is_own_module(module.__name__):
            return
        label = self._label(module.__name__, module)
        for name, each in list(vars(module).items()):
            if not name.startswith("__"):
                events = self._changes.of_global(vars(module), name)
                self._add(f"{label}.{name}", each, _putter(module, name), events)

    def _label(self, name: str, holder: Any) -> str:
        label, number = name, 2
        while label in self._holders:
            label, number = f"{name}~{number}", number + 1
        self._holders[label] = holder
        return label

    def _add(self, path: str, value: Any, put: Callable[[Any], Any], events: list[Event]) -> None:
        if not (isinstance(value, (type, ModuleType)) or is_harmless(value)):
            self._all[path] = Place(value, put, events)

    def has(self, path: str) -> bool:
        return path in self._all

    def hidden(self) -> Iterator[tuple[str, Any]]:
        """Networks, optimizers and tensors that are trained, each with its path."""
        for path, place in self._all.items():
            if _holds_trained(place.value):
                yield path, place.value

    def find(self, found: Found, transient: frozenset[str]) -> None:
        """Add the places that are state: what is written to, and what has a state of its own."""
        for path, place in self._all.items():
            value = place.value
            if _holds_trained(value):
                continue
            line = self._changes.why(value, place.events) or self._changes.why_inside(value)
            if holds_objects(value) or line or (self._changes.is_assigned(place.events) and self._is_kept(value)):
                if path in transient:
                    found.left[path] = _TRANSIENT
                    continue
                found.values[path] = value
                found.written[path] = line

    def _is_kept(self, value: Any) -> bool:
        """Of what is assigned to while the script is made."""
        return not inspect.isroutine(value) and _is_storable(value)

    def putter(self, path: str) -> Callable[[Any], Any] | None:
        """How the value of a place is replaced; also of an attribute that code will make."""
        place = self._all.get(path)
        if place is not None:
            return place.put
        label, _, name = path.rpartition(".")
        if label not in self._holders or name.startswith("__"):
            return None
        holder = self._holders[label]
        is_module = isinstance(holder, ModuleType)
        of_module = self._changes.of_global(vars(holder), name) if is_module else []
        return _putter(holder, name) if self._changes.is_assigned([*of_module, *self._changes.of_field(name)]) else None


def _is_open(value: Any, kind: Kind) -> bool:
    """False for objects that keep their own state, and for those of installed packages, whose code is another."""
    if kind is Kind.OBJECT:
        return access_to(value) is None and (user_objects.is_plain(type(value)) or is_namespace(value))
    return kind not in (Kind.OPTIMIZER, Kind.HARMLESS, Kind.UNKNOWN)


def _nowhere(value: Any) -> None:
    raise ValueError("it cannot be replaced, only changed in place")


def _putter(holder: Any, name: str) -> Callable[[Any], Any]:
    # Not setattr, which would run a metaclass of the user.
    return functools.partial(type.__setattr__ if isinstance(holder, type) else setattr, holder, name)


def _put_default(function: FunctionType, number: int, value: Any) -> None:
    defaults = function.__defaults__ or ()
    function.__defaults__ = (*defaults[:number], value, *defaults[number + 1 :])


def _holds_trained(value: Any) -> bool:
    return holds(value, lambda each: is_module(each) or is_optimizer(each) or is_trainable(each))


def objects_in(value: Any) -> list[Any]:
    """Objects with a state in a value, and tensors that are trained."""
    return [each for each in inside(value) if access_to(each) is not None or is_trainable(each)]


def is_at_rest(value: Any) -> bool:
    """True for a network that nobody can train."""
    return is_module(value) and not any(each.requires_grad for each in value.parameters())
