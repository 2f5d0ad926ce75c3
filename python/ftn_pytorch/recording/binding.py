# SPDX-License-Identifier: MIT
"""What must stay as it is for a recording to hold: one thing, and what it was."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..values.held import tables_in
from ..values.kinds import Kind, base_of, kind_of

ITEM, ABSENT, CELL, ITEMS, SLOT, CLASS, FIELDS, FUNCTION, BASES = range(9)
"""Kinds of bindings, those of ``Binding`` in src/recording/validity.hpp."""

ANYTHING = NotImplemented
"""Stands for a value that may become another one."""


class Binding(NamedTuple):
    """Something that must stay as it is. What ``key`` and ``value`` are depends on the kind.

    ITEM, ABSENT: an item of a dict. CELL: content of a cell. ITEMS: all items of a container in their order, keys and
    values in turn for a dict; the key is the class whose iterator tells them. SLOT: an attribute that is no item of a
    dict. CLASS: class of an object. FIELDS: the dict of its fields. FUNCTION: code and defaults. BASES: of a class.
    ``ANYTHING`` stands for a cell or a slot that holds nothing yet.
    """

    kind: int
    holder: Any
    key: Any
    value: Any
    path: str


def all_of(fields: dict[str, Any], path: str) -> Binding:
    return Binding(ITEMS, fields, dict, tuple(each for pair in fields.items() for each in pair), path)


def pairs_of(holder: Any) -> tuple[tuple[Any, Any], ...]:
    base: Any = base_of(type(holder))
    return tuple((key, dict.__getitem__(holder, key)) for key in base.__iter__(holder))


def results_kept(cached: Any, path: str) -> list[Binding]:
    """That functools.lru_cache keeps what it has: else it is computed anew."""
    found = []
    for table in tables_in(cached):
        if all(kind_of(key) is Kind.CONSTANT for key in table):
            found += [Binding(ITEM, table, key, each, f"a result of {path}") for key, each in table.items()]
        else:
            found.append(all_of(table, f"results of {path}"))
    return found
