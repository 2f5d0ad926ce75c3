# SPDX-License-Identifier: MIT
"""Reads of attributes in the call that is recorded: by Python and by C, by whatever name, also of what is not there;
and what code mentions, or holds, that reads values without naming them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from types import BuiltinFunctionType, MemberDescriptorType, MethodWrapperType, ModuleType
from typing import Any

from ..system import extension
from ..values.held import fields_of
from ..values.user_objects import is_made_in_c

ASKING = frozenset(("getattr", "hasattr", "AttributeError", "__dict__", "vars", "attrgetter"))
"""May ask for an attribute that is not there."""
PAST_READS = frozenset(("__get__", "__getattribute__", "getattr_static"))
"""Reads fields where nobody who looks on is told."""
BY_TEXT = PAST_READS | {"globals", "locals", "eval", "exec"}
"""Reads names, too."""
OF_UNSEEN = frozenset(("vars", "__dict__", "getattr", "attrgetter", "cell_contents"))
"""Reads by a text what is in objects on which nobody can look."""
IN_TEXTS = frozenset(("format", "format_map"))
SEES_RECORDER = frozenset(("getprofile", "getrefcount", "get_referrers"))
OF_C = (BuiltinFunctionType, operator.attrgetter, operator.methodcaller)
"""Counts as mentioned by its own name, whatever name leads to it."""
DESCRIPTORS = (MemberDescriptorType, MethodWrapperType, operator.methodcaller)
"""Can get a slot of an object of which nothing is asked then."""


class Reads:
    """While it is entered, ``seen`` is told each attribute that this thread asks objects and modules for, before it
    gets it, and tells whether that counts. ``look_at`` names them.

    Their classes look on for that time, whoever has written them. They stay the classes that they are, which code may
    ask for, other than those of modules: these have one that cannot be changed.
    """

    def __init__(self, seen: Callable[[Any, str], bool]) -> None:
        self._is_counted = seen
        self._seen: list[Callable[[Any, str], None]] = []
        """Empty when it is not entered: classes of modules live on until garbage is collected, and must keep no
        object."""
        self._counts: Counter[tuple[int, str]] = Counter()
        self._of_fields: dict[int, Any] = {}
        self._waiting: list[Any] = []
        self._classes: dict[type, None] = {}
        self._modules: list[tuple[ModuleType, type]] = []

    def times(self, fields: Any, name: str) -> int | None:
        """How often an attribute of the object with these fields, or slots, was asked for; None if nobody looks on."""
        value = self._of_fields.get(id(fields))
        return None if value is None else self._counts[id(value), name]

    def look_at(self, value: Any) -> None:
        if is_made_in_c(type(value)) and type(value) is not ModuleType:
            return
        self._of_fields[id(value)] = self._of_fields[id(fields_of(value))] = value
        self._waiting.append(value)
        if self._seen:
            self._begin()

    def __enter__(self) -> Reads:
        self._seen.append(self._tell)
        self._begin()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._seen.clear()
        for kind in self._classes:
            type.__delattr__(kind, "__getattribute__")
        for module, kind in self._modules:
            object.__setattr__(module, "__class__", kind)
        self._classes, self._modules = {}, []

    def _begin(self) -> None:
        while self._waiting:
            value = self._waiting.pop()
            kind = type(value)
            if kind is ModuleType:
                watched = type(kind.__name__, (kind,), {"__getattribute__": self._telling(kind)})
                object.__setattr__(value, "__class__", watched)
                self._modules.append((value, kind))
            elif "__getattribute__" not in vars(kind) and self._classes.keys().isdisjoint(kind.__mro__):
                type.__setattr__(kind, "__getattribute__", self._telling(kind))
                self._classes[kind] = None

    def _telling(self, kind: type) -> Any:
        return extension.module().telling(kind.__getattribute__, self._seen)

    def _tell(self, value: Any, name: str) -> None:
        self._counts[id(value), name] += self._is_counted(value, name)
