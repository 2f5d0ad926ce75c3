# SPDX-License-Identifier: MIT
"""What must stay as it is for a recording to hold: one thing, and what it was."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..values.held import entries_in, tables_in
from ..values.kinds import Kind, base_of, kind_of

ITEM, ABSENT, CELL, ITEMS, SLOT, CLASS, FIELDS, FUNCTION, BASES, KEPT = range(10)
"""Kinds of bindings, those of ``Binding`` in src/recording/validity.hpp."""

_FEW = 16
"""Results of a cache, all of which are looked at for each."""

ANYTHING = NotImplemented
"""Stands for a value that may become another one."""


class Binding(NamedTuple):
    """Something that must stay as it is. What ``key`` and ``value`` are depends on the kind.

    ITEM, ABSENT: an item of a dict. CELL: content of a cell. ITEMS: all items of a container in their order, keys and
    values in turn for a dict; the key is the class whose iterator tells them. SLOT: an attribute that is no item of a
    dict. CLASS: class of an object. FIELDS: the dict of its fields. FUNCTION: code and defaults. BASES: of a class.
    KEPT: what functools.lru_cache with a limit has for a key.
    ``ANYTHING`` stands for a cell or a slot that holds nothing yet.
    """

    kind: int
    holder: Any
    key: Any
    value: Any
    path: str


def pairs_of(holder: Any) -> tuple[tuple[Any, Any], ...]:
    base: Any = base_of(type(holder))
    return tuple((key, dict.__getitem__(holder, key)) for key in base.__iter__(holder))


def items_of(holder: Any, path: str, keys: set[Any] | None = None, pairs: tuple | None = None) -> Binding:
    """All items of a container. ``keys``: only these of a dict, and that there are no others. ``pairs``: as they
    were."""
    base: Any = base_of(type(holder))
    if issubclass(base, dict):
        found = pairs or pairs_of(holder)
        flat = tuple(e for key, each in found for e in (key, each if keys is None or key in keys else ANYTHING))
    else:
        flat = tuple(base.__iter__(holder))
    return Binding(ITEMS, holder, base, flat, path)


def results_kept(cached: Any, path: str) -> list[Binding] | None:
    """That functools.lru_cache keeps what it has: else it is computed anew. Of one with a limit each result is looked
    for, or nothing may come to it. None where it is full: it puts each new result into the object that held another."""
    found = []
    limit, count = cached.cache_info()[2:]
    if limit is not None and count <= _FEW:
        return [Binding(KEPT, cached, key, each, f"a result of {path}") for key, each in entries_in(cached)]
    if limit is not None and limit <= count:
        return None
    for table in tables_in(cached):
        if limit is None and all(kind_of(key) is Kind.CONSTANT for key in table):
            found += [Binding(ITEM, table, key, each, f"a result of {path}") for key, each in table.items()]
        else:
            found.append(items_of(table, f"results of {path}"))
    return found
