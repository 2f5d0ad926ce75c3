# SPDX-License-Identifier: MIT
"""What a run does to names besides its operators: another value, a number that is added, items of a list. And which
places have other values, where a binding no longer holds.

``path`` is how a user would write it. ``now`` is what is there, ``expected`` what is to be there after a run, ``put``
does it, ``back`` undoes what a call has done as far as a run reads it. ``is_compared`` tells whether a check compares
what is expected with what the function has left.
"""

from __future__ import annotations

import itertools
import struct
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch

from ..system import extension
from ..values.held import class_of, fields_of, shown
from ..values.kinds import base_of
from .binding import ANYTHING, CELL, ITEM, ITEMS, SLOT, Binding
from .returned import is_same_value

_SCHEDULER = torch.optim.lr_scheduler.LRScheduler


class Target:
    """What a run does in Python behind its operators."""

    is_compared: ClassVar = True

    def expected(self, before: Any, value: Any) -> Any:
        return value

    def back(self, before: Any) -> None:
        """No run reads it."""


@dataclass(frozen=True, eq=False)
class Place(Target):
    """Where a value is: an item of a dict, list or deque, the content of a cell, a slot of an object."""

    kind: int
    holder: Any
    key: Any
    path: str

    def get(self) -> Any:
        """What is there now, None if nothing is."""
        try:
            if self.kind == CELL:
                return self.holder.cell_contents
            if self.kind == SLOT:
                return object.__getattribute__(self.holder, self.key)
            return base_of(type(self.holder)).__getitem__(self.holder, self.key)
        except (LookupError, AttributeError, ValueError):
            return None

    now = get

    def put(self, value: Any) -> None:
        """No code of a user runs."""
        if self.kind == CELL:
            self.holder.cell_contents = value
        elif self.kind == SLOT:
            object.__setattr__(self.holder, self.key, value)
        elif (kind := class_of(self.holder)) is not None:
            type.__setattr__(kind, self.key, value)
        else:
            base_of(type(self.holder)).__setitem__(self.holder, self.key, value)

    def back(self, before: Any) -> None:
        if self.get() is not before:
            self.put(before)

    def is_that_of(self, other: Place) -> bool:
        return self.kind == other.kind and self.holder is other.holder and self.key == other.key


@dataclass(frozen=True, eq=False)
class Added(Place):
    """Numbers that each run adds to the one in a place, one after the other: constants, or those that it takes out of
    tensors."""

    numbers: tuple[int | float, ...]

    # other threads may have added to it
    back = Target.back

    def expected(self, before: Any, value: Any) -> Any:
        return sum_of(before, self.numbers or value)

    def put(self, value: Any) -> None:
        for each in self.numbers or value:
            # in one statement, as code adds it: no other thread comes in between
            if type(self.holder) is dict:
                self.holder[self.key] += each
            elif self.kind == CELL:
                self.holder.cell_contents += each
            else:
                extension.module().add_to_slot(self.holder, self.key, each)


@dataclass(frozen=True, eq=False)
class Stepped(Target):
    """A scheduler of torch whose step each run makes, behind those of its optimizer."""

    scheduler: Any
    path: str

    is_compared: ClassVar = False

    def parts(self) -> list[Any]:
        """This scheduler, and those that it steps."""
        found = [self.scheduler]
        for each in found:
            lists = (value for value in fields_of(each).values() if type(value) is list)
            found += [item for items in lists for item in items if isinstance(item, _SCHEDULER)]
        return found

    def groups(self) -> list[dict[str, Any]]:
        return self.scheduler.optimizer.param_groups

    def now(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(each, dict(each)) for each in (*map(fields_of, self.parts()), *self.groups())]

    def back(self, before: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        for fields, values in before:
            for name, value in values.items():
                if fields.get(name) is not value:
                    fields[name] = value

    def put(self, value: Any) -> None:
        self.scheduler.step()


@dataclass(frozen=True, eq=False)
class Appended(Target):
    """Items at the end of a list or a deque, which nobody reads in a call."""

    holder: Any
    path: str
    count: int

    def now(self) -> tuple:
        """The last items, which are new after a call."""
        length = len(self.holder)
        return tuple(itertools.islice(self.holder, max(length - self.count, 0), length))

    def put(self, value: tuple) -> None:
        append: Any = base_of(type(self.holder)).append
        for each in value:
            append(self.holder, each)


class Guard(NamedTuple):
    """What code makes of a number in a place, to which it has added ``added`` before; it must give ``value``."""

    place: Place
    kind: type
    added: tuple[int | float, ...]
    computes: Callable[[Any], Any]
    value: Any
    text: str

    def holds(self) -> bool:
        now = self.place.get()
        if type(now) is not self.kind:
            return False
        try:
            found = self.computes(sum_of(now, self.added))
        except Exception:  # which the function is about to raise
            return False
        return type(found) is type(self.value) and _bits_of(found) == _bits_of(self.value)


def sum_of(number: Any, added: Iterable[Any]) -> Any:
    """One after the other, as code adds them: sums of floats depend on the order."""
    for each in added:
        number = number + each
    return number


def _bits_of(value: Any) -> Any:
    """What tells zeros of other signs apart, and a number that is none from others."""
    return struct.pack("d", value) if type(value) is float else value


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
