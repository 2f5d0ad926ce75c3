# SPDX-License-Identifier: MIT
"""What objects, classes and cells hold, told without running code of theirs."""

from __future__ import annotations

import functools
import gc
import re
import weakref
from collections.abc import Iterator
from types import CellType
from typing import Any

from . import loaded

CACHED = type(functools.lru_cache(lambda: None))
EMPTY = object()
_NO_FIELDS: dict[str, Any] = {}
"""Always empty, and always there: by its identity it is known from the fields of others."""
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w -]*")
_LINK = "_lru_list_elem"


@functools.cache
def fields_of_modules() -> frozenset[str]:
    """Fields that every module of torch has, and that are looked at in another way or are none of the user's."""
    return frozenset(vars(loaded("torch").nn.Module())) - {"training"}


def content(cell: CellType) -> Any:
    """What a variable of an enclosing function holds, EMPTY for nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return EMPTY


def shown(key: Any) -> str:
    """A key as it is written, if that calls no code of a user."""
    return repr(key) if type(key) in (str, int, float, bool, bytes, type(None)) else f"a {type(key).__name__}"


def shown_apart(key: Any, number: int) -> str:
    """A key in a path: no two keys of a dict are shown alike."""
    if type(key) is str:
        return key if _PLAIN_KEY.fullmatch(key) else repr(key)
    if type(key) is int and abs(key) >> 32:  # the identity of something, or of a thread
        return f"({number})"
    return repr(key) if type(key) in (int, float, bool, bytes, type(None)) else f"({number})"


def tables_in(cached: Any) -> list[dict[Any, Any]]:
    """Where functools.lru_cache keeps results."""
    fields = fields_of(cached)
    return [each for each in gc.get_referents(cached) if type(each) is dict and each is not fields]


def entries_in(cached: Any) -> list[tuple[Any, Any]]:
    """Keys and results of functools.lru_cache with a limit, whose links it shows to the collector."""
    parts = gc.get_referents(cached)
    threes = zip(parts, parts[1:], parts[2:])
    return [(key, each) for key, each, kind in threes if type(kind) is type and kind.__name__ == _LINK]


def results_in(cached: Any) -> Iterator[Any]:
    """What functools.lru_cache keeps. With a limit each is in a link of a chain, whose class is told behind it."""
    for table in tables_in(cached):
        yield from (each for each in list(table.values()) if type(each).__name__ != _LINK)
    yield from (each for _, each in entries_in(cached))


_classes: weakref.WeakValueDictionary[int, type] = weakref.WeakValueDictionary()
"""Those whose fields were asked for, by the identity of these."""


def dict_of_class(kind: type) -> dict[str, Any]:
    """The fields of a class, to be read. What ``vars`` shows of them is no dict, and stands for one."""
    fields = next(each for each in gc.get_referents(vars(kind)) if isinstance(each, dict))
    _classes[id(fields)] = kind
    return fields


def class_of(fields: dict[Any, Any]) -> type | None:
    """The class whose ``dict_of_class`` that is, None for another dict. Who writes there without the class leaves
    Python with a value that it has read before, and that may be gone."""
    return _classes.get(id(fields))


def fields_of(value: Any) -> dict[str, Any]:
    """The ``__dict__`` of a value itself, without running code of its class; ``_NO_FIELDS`` if it has none."""
    try:
        fields = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return _NO_FIELDS
    return fields if type(fields) is dict else _NO_FIELDS


def slots(kind: type) -> Iterator[str]:
    """Names that a class declares in ``__slots__``."""
    for each in kind.__mro__:
        names = vars(each).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__"):
                is_mangled = name.startswith("__") and not name.endswith("__")
                yield f"_{each.__name__.lstrip('_')}{name}" if is_mangled else name


def slots_of(value: Any) -> dict[str, Any]:
    """The fields of a value that its classes declare in ``__slots__``, as far as they are set."""
    found = {}
    for name in slots(type(value)):
        try:
            found[name] = object.__getattribute__(value, name)
        except AttributeError:
            continue
    return found
