# SPDX-License-Identifier: MIT
"""Whether code of a script writes to a live value: what ``writes`` found in the source, held against the values."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinMethodType, FunctionType, ModuleType
from typing import Any

from ..values import user_objects
from ..values.code_names import globals_in, named_by
from ..values.kinds import Kind, kind_of, qualities
from ..values.walk import Walk
from .scopes import ANY, CLASS, ITEM, WITHIN, Root
from .stateful import is_namespace
from .writes import ASSIGNED, ASSIGNED_BY_SELF, CALLED, FOR, HANDED, IN_PLACE, NEXT, PASSED, READ, WITH, Analysis, Event

_IN_ITSELF = (ITEM, IN_PLACE, NEXT)
_ALWAYS = (ASSIGNED, ASSIGNED_BY_SELF, *_IN_ITSELF)
_USES = (PASSED, FOR, WITH)
_STORES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR")
_USES_OF_FIELDS = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR")
# Methods of Python's containers, and of NumPy's arrays, that change them
_CHANGING = frozenset(
    ("append()", "appendleft()", "add()", "clear()", "discard()", "extend()", "extendleft()", "insert()")
    + ("move_to_end()", "pop()", "popitem()", "popleft()", "remove()", "reverse()", "rotate()", "setdefault()")
    + ("sort()", "subtract()", "update()", "difference_update()", "intersection_update()")
    + ("symmetric_difference_update()", "__setitem__()", "__delitem__()", "__ior__()", "__iadd__()", "__setattr__()")
    + ("fill()", "put()", "resize()", "partition()", "setflags()", "byteswap()", "itemset()")
)
_LOOKED_AT = 100  # items of one container: they are alike
_IS_CODE = (Kind.INSTALLED, Kind.HARMLESS, Kind.FUNCTION, Kind.CLASS, Kind.NAMESPACE)
_HAS_STATE = (Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.GENERATOR)


class Changes:
    """What code of a script, and of the user's own modules that it imports, writes to.

    Functions without a source, made of texts (``exec``), count as writing to all that they mention.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        spaces = {space.get("__file__") or "": space for space in own_spaces(namespace)}
        self._analysis = Analysis({file: text for file in spaces if (text := _source(file)) is not None})
        self._fields: dict[str, dict[Event, None]] = defaultdict(dict)
        for root, events in self._analysis.events.items():
            first = spaces.get(root.owner, {}).get(root.name) if root.kind == "global" else None
            if first is None or kind_of(first) not in (Kind.INSTALLED, Kind.HARMLESS):
                for event in events:
                    self._add_fields(event)

        for space in spaces.values():
            for function in _functions_in(space):
                if not self._scopes_of(function):
                    self._add_all(function)
        # A name for a method of a container, push = history.append, is called somewhere.
        self._bound = {
            id(each.__self__): f"{file} ({name})"
            for file, space in spaces.items()
            for name, each in list(space.items())
            if isinstance(each, BuiltinMethodType) and f"{each.__name__}()" in _CHANGING
        }

    def _add_fields(self, event: Event) -> None:
        for number, step in enumerate(event.steps):
            if step.startswith("."):
                self._fields[step][event._replace(steps=event.steps[number + 1 :])] = None

    def _add_all(self, function: FunctionType) -> None:
        """What the byte code of a function mentions, which is all there is of one that was made of a text."""
        code, file = function.__code__, function.__globals__.get("__file__")
        stored = named_by(code, *_STORES)
        for name in globals_in(code):
            self._add_mentioned(self._analysis.events[Root("global", name, file)], name in stored, code.co_filename)
        for name in named_by(code, *_USES_OF_FIELDS):
            self._add_mentioned(self._fields[f".{name}"], name in stored, code.co_filename)

    @staticmethod
    def _add_mentioned(events: dict[Event, None], is_stored: bool, file: str) -> None:
        events.update((Event((), each, (file, 0)), None) for each in (_ALWAYS if is_stored else _IN_ITSELF))

    def of_global(self, space: Mapping[str, Any], name: str) -> list[Event]:
        """What is done to a global name of a module."""
        return list(self._analysis.events.get(Root("global", name, space.get("__file__")), ()))

    def of_field(self, name: str) -> list[Event]:
        """What is done to a field of that name, of whatever object."""
        return [*self._fields.get(f".{name}", ()), *self._fields.get(ANY, ())]

    def of_class(self, name: str) -> list[Event]:
        """The same for a class, whose attributes an assignment to ``self.name`` leaves as they are."""
        return [event for event in self.of_field(name) if event.operation != ASSIGNED_BY_SELF]

    def of_cell(self, function: FunctionType, variable: str) -> list[Event]:
        """What is done to a variable of an enclosing function; by code without source, all."""
        scopes = self._scopes_of(function)
        if not scopes:
            return [Event((), operation, (function.__code__.co_filename, 0)) for operation in _ALWAYS]
        roots = {self._analysis.root_of(scope, variable) for scope in scopes}
        return [event for root in roots for event in self._analysis.events.get(root, ())]

    def of_default(self, function: FunctionType, parameter: str) -> list[Event]:
        """What a function does to a parameter."""
        found = [Root("parameter", parameter, scope) for scope in self._scopes_of(function)]
        return [event for root in found for event in self._analysis.events.get(root, ())]

    def _scopes_of(self, function: FunctionType) -> list[Any]:
        code = function.__code__
        return self._analysis.scopes.get((code.co_filename, code.co_firstlineno, code.co_name), [])

    def is_assigned(self, events: Iterable[Event]) -> bool:
        """True if a name is bound to another value, also while the script is made."""
        return any(not event.steps and event.operation in (ASSIGNED, ASSIGNED_BY_SELF) for event in events)

    def why(self, value: Any, events: Iterable[Event]) -> str:
        """The line that writes to a value, ``model.py:12 (state.n += 1)``; empty if none does."""
        if id(value) in self._bound:
            return self._bound[id(value)]
        for event in events:
            if not event.is_made and self._writes(value, event.steps, event.operation):
                return self._told(event.where)
        return ""

    def why_inside(self, value: Any) -> str:
        """The same for the fields of an object of an own class, by their names alone."""
        fields = user_objects.fields(value) if user_objects.is_plain(type(value)) else {}
        return next(filter(None, (self.why(each, self.of_field(name)) for name, each in fields.items())), "")

    def _told(self, where: tuple[str, int]) -> str:
        file, number = where
        lines = self._analysis.lines.get(file, [])
        text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        return f"{file}:{number} ({text})" if text else file

    def _writes(self, value: Any, steps: tuple[str, ...], operation: str) -> bool:
        if not steps:
            return self._does(value, operation)
        kind, step, rest = kind_of(value), steps[0], steps[1:]
        if kind in _IS_CODE or step == CLASS:
            return False
        if kind in _HAS_STATE:
            return True
        if kind in (Kind.TENSOR, Kind.ARRAY):
            # Attributes and items of a tensor are views of it.
            return True if operation == ASSIGNED and not rest else self._writes(value, rest, operation)
        if step == ITEM:
            return self._writes_to_item(value, kind, rest, operation)
        if step == WITHIN:
            rest = tuple(itertools.dropwhile(lambda each: each in (ITEM, WITHIN), rest))
            return any(self._writes(each, rest, operation) for each in _within(value))
        if kind is Kind.CONSTANT:
            return False
        fields = user_objects.fields(value)
        if step == ANY or step[1:] not in fields:
            return operation in _ALWAYS or operation in _CHANGING
        if not rest and operation in (ASSIGNED, ASSIGNED_BY_SELF):
            return True
        return self._writes(fields[step[1:]], rest, operation)

    def _writes_to_item(self, value: Any, kind: Kind, rest: tuple[str, ...], operation: str) -> bool:
        items = _items(value)
        if not items:
            return kind is not Kind.CONSTANT and (operation in _ALWAYS or operation in _CHANGING)
        return any(self._writes(each, rest, operation) for each in items)

    def _does(self, value: Any, operation: str) -> bool:
        """Whether an operation on a value itself, or an assignment to the place where it is, changes something."""
        if operation in (ASSIGNED, ASSIGNED_BY_SELF):
            return True
        kind = kind_of(value)
        if kind in (Kind.CONSTANT, *_IS_CODE):
            return False
        if kind in _HAS_STATE:
            return True
        if kind in (Kind.TENSOR, Kind.ARRAY):
            is_changing = operation.endswith("_()") and not operation.endswith("__()")
            return is_changing or operation in (ITEM, IN_PLACE, HANDED) or operation in _CHANGING
        if operation == READ:
            return isinstance(value, defaultdict) and value.default_factory is not None
        if operation in _USES or (operation == HANDED and is_foreign_kind(kind, value)):
            return hasattr(type(value), "__next__")
        if kind is Kind.CONTAINER:
            return operation in (*_ALWAYS, HANDED) or operation in _CHANGING
        if kind is Kind.OBJECT and qualities(type(value)).is_all_own:
            # What its own methods do is known by their source.
            is_known = self._analysis.called("__call__" if operation == CALLED else operation[:-2])
            return operation in (*_ALWAYS, HANDED) or (operation in _CHANGING and not is_known)
        return True


def _functions_in(space: Mapping[str, Any]) -> Iterator[FunctionType]:
    """Functions of the user that the names of a module lead to, without those that Python has made for classes."""
    named = [(name, each) for name, each in list(space.items()) if not name.startswith("__")]
    walk = Walk(named, enters=lambda value, kind: kind in (Kind.FUNCTION, Kind.CLASS))
    deque(walk, maxlen=0)
    functions = [each for each, _, _ in walk.entered.values() if isinstance(each, FunctionType)]
    for each in functions:
        if user_objects.is_own_module(each.__globals__.get("__name__", "")) and not is_generated(each):
            yield each


def is_generated(function: FunctionType) -> bool:
    """True for ``__init__`` of a dataclass and its like, which Python has made."""
    return function.__code__.co_filename.startswith("<") and function.__name__.startswith("__")


def is_foreign_kind(kind: Kind, value: Any) -> bool:
    """True for what is neither a container nor of an own class nor a namespace."""
    is_own = kind is Kind.OBJECT and (qualities(type(value)).is_all_own or is_namespace(value))
    return not (is_own or kind in (Kind.CONTAINER, Kind.TENSOR, Kind.ARRAY))


def _within(value: Any, depth: int = 3) -> Iterator[Any]:
    """A value, and what is in it."""
    yield value
    for each in (_items(value) or ()) if depth else ():
        yield from _within(each, depth - 1)


def _items(value: Any) -> list[Any] | None:
    """Some of the items of a container, None for what is none."""
    kind = kind_of(value)
    if kind is Kind.OBJECT:
        content = None if is_namespace(value) else user_objects.content(value)
    else:
        content = value if isinstance(value, (list, dict, tuple, set, frozenset, deque)) else None
    if content is None:
        return None
    return [each for each, _ in zip(content.values() if isinstance(content, dict) else content, range(_LOOKED_AT))]


def own_spaces(namespace: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The names of a script, and those of the user's own modules that it imports."""
    seen, todo = {id(namespace)}, [namespace]
    while todo:
        space = todo.pop(0)
        yield space
        for value in list(space.values()):
            is_defined = isinstance(value, (FunctionType, type))
            name = value.__name__ if isinstance(value, ModuleType) else value.__module__ if is_defined else None
            module = value if isinstance(value, ModuleType) else sys.modules.get(name or "")
            if module is None or not isinstance(name, str) or not user_objects.is_own_module(name):
                continue
            if id(vars(module)) not in seen and name != namespace.get("__name__"):
                seen.add(id(vars(module)))
                todo.append(vars(module))


def _source(file: str) -> str | None:
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, ValueError):
        return None
