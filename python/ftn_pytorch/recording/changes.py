# SPDX-License-Identifier: MIT
"""What has become of a binding that no longer holds: which places have other values, and how a user would say it."""

from __future__ import annotations

from collections import deque
from typing import Any

from ..values.held import shown
from .binding import ANYTHING, CELL, ITEM, ITEMS, SLOT, Binding
from .places import Place
from .returned import is_same_value


def changes_in(binding: Binding) -> list[tuple[Place, Any, Any]]:
    """What has changed, with both values. Empty if a run could not do the same."""
    kind, holder, base, value, path = binding
    if kind in (ITEM, CELL, SLOT):
        place = Place(kind, holder, base, path)
        return [(place, value, place.get())]
    if not _is_known(binding) or len(holder) != _length_of(binding):
        return []
    is_dict, is_fields = issubclass(base, dict), path.endswith(".")
    there = base.items(holder) if is_dict else enumerate(base.__iter__(holder))
    before = zip(value[::2], value[1::2]) if is_dict else enumerate(value)
    found = []
    for (key, now), (same_key, same) in zip(there, before):
        if not is_same_value(key, same_key):
            return []
        if same is not ANYTHING and not is_same_value(now, same):
            place = Place(ITEM, holder, key, f"{path}{key}" if is_fields else f"{path}[{shown(key)}]")
            found.append((place, same, now))
    return found


def difference(binding: Binding) -> tuple[str, str]:
    """What a binding that no longer holds is about, and the two values, "2 before a call, 3 after it", if plain."""
    for place, before, now in changes_in(binding):
        return place.path, _told(before, now)
    path = binding.path
    if not _is_known(binding):
        return path, ""
    count, now = _length_of(binding), len(binding.holder)
    if now != count:
        return (f"fields of {path[:-1]}" if path.endswith(".") else f"len({path})"), _told(count, now)
    return f"the order of {path}", ""


def _is_known(binding: Binding) -> bool:
    return binding.kind == ITEMS and issubclass(binding.key, (dict, list, deque))


def _length_of(binding: Binding) -> int:
    return len(binding.value) // 2 if issubclass(binding.key, dict) else len(binding.value)


def _told(before: Any, now: Any) -> str:
    plain = all(isinstance(each, (int, float, str)) for each in (before, now))
    return f"{before!r} before a call, {now!r} after it" if plain else ""
