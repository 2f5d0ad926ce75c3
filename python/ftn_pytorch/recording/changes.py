# SPDX-License-Identifier: MIT
"""What a binding that no longer holds is about, as a user would say it."""

from __future__ import annotations

from collections import deque
from typing import Any

from ..values.held import shown
from ..values.kinds import is_simple
from .binding import ANYTHING, CELL, ITEM, ITEMS, Binding


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
