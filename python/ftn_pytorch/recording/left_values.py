# SPDX-License-Identifier: MIT
"""What a function leaves in names for its next call: another tensor, as a hidden state, or another mode.

Each run puts the same there. A tensor that was there before the call is given to the recording like one more argument,
so it may be another object in each call; shape, strides and type stay. A mode (a bool, a text, None) is a binding: that
a call goes from eval() to train() is another recording than that it goes from train() to train().
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from ..values.held import fields_of
from ..values.walk import By, Edge
from . import returned
from .arguments import leaves
from .binding import ANYTHING, CELL, ITEM, ITEMS, SLOT, Binding
from .bindings import Watch
from .changes import changed_items, difference
from .following import OF_COUNTS, Following, Known, Way
from .places import Place
from .recorder import OF_NUMBER, Unrecordable
from .returned import PLAIN, filled
from .tape import is_ordinary

_MODES = (bool, str, type(None))
_NUMBERS = (int, float)


def found(watch: Watch, known: Known, values: Sequence[Any], following: Following) -> list[tuple[Any, Any]]:
    """What the call has left in places, those of tensors held these values before it. What is found anew is put into
    ``known``, for the next attempt to record it."""
    _release(watch, [*known.tensors, *known.numbers], values)
    left: list[tuple[Any, Any]] = [(place, place.get()) for place in known.tensors]
    new = ""
    for each in watch.changed():
        changes = _changes_in(each)
        if _grows(each, changes) and _note_list(each.holder, watch, known):
            new = new or _told(each)
            continue
        if not changes:
            raise Unrecordable(_told(each))
        for place, before, now in changes:
            if isinstance(before, _MODES) and isinstance(now, _MODES):
                left.append((place, now))
                continue
            is_number = type(before) in _NUMBERS and type(now) in _NUMBERS
            if not is_number and not (_is_tensors(before) and _is_tensors(now)):
                raise Unrecordable(_told(each))
            if is_number and each.kind == ITEMS and not each.path.endswith(".") and not _note_item(place, watch, known):
                raise Unrecordable(_told(each))
            to = known.numbers if is_number else known.tensors
            to += [] if any(place.is_that_of(other) for other in to) else [place]
            new = new or (_told(each) if is_number else f"it puts another tensor into {place.path} in each call")
    new = new or _other_names(watch, known)
    if new:
        raise Unrecordable(new)
    if not following.is_active and any(each.value is not None for each in following.taken):
        known.takes_numbers = True
        raise Unrecordable(OF_NUMBER)
    return [*left, *following.found(watch)]


def _grows(binding: Binding, changes: Sequence[tuple[Place, Any, Any]]) -> bool:
    """Whether items of a list are new, and no tensors that a run could put in their places."""
    is_list = binding.kind == ITEMS and type(binding.holder) in (list, deque)
    return is_list and (len(binding.holder) > len(binding.value) or any(type(now) in _NUMBERS for *_, now in changes))


def _note_item(place: Place, watch: Watch, known: Known) -> bool:
    """A number in a dict. False where that is reached by more than names."""
    edges = watch.edges.get(id(place.holder), []) if type(place.holder) is dict else []
    found = [_way(edge, place.key, place.get()) for edge in edges]
    known.ways += [each for each in found if each is not None]
    return bool(found) and None not in found


def _way(name: Edge, key: Any, to: Any) -> Way | None:
    """None for what is no name."""
    if name.by not in (By.GLOBAL, By.FIELD, By.CELL) or name.holder is None:
        return None
    kind = CELL if name.by == By.CELL else ITEM if isinstance(name.holder, dict) else SLOT
    return Way(Place(kind, name.holder, None if kind == CELL else name.key, name.path), key, to)


def _note_list(holder: Any, watch: Watch, known: Known) -> bool:
    """False where a list is reached by more than names and keys of dicts."""
    found: list[Way] = []
    for edge in watch.edges.get(id(holder), []):
        is_item = edge.by == By.ITEM and type(edge.holder) is dict
        for name in watch.edges.get(id(edge.holder), []) if is_item else [edge]:
            if (way := _way(name, edge.key if is_item else None, holder)) is None:
                return False
            found.append(way)
        known.paths |= {edge.path}
    known.ways += found
    known.lists[id(holder)] = holder
    return bool(found)


def _other_names(watch: Watch, known: Known) -> str:
    """What has got another name since the attempt that has found it; that name is noted."""
    now = Known()
    counted = {id(way.place.get()) for way in known.ways if way.is_number}
    for place in known.numbers:
        if id(place.holder) in counted and id(place.holder) in watch.edges and not _note_item(place, watch, now):
            raise Unrecordable(f"it changes {place.path}, to which more than names leads: {OF_COUNTS}")
    for holder in known.lists.values():
        if id(holder) in watch.edges and not _note_list(holder, watch, now):
            raise Unrecordable("a list to which it appends is reached by more than names and keys of dicts")
    others = [each for each in now.ways if not any(map(each.is_that_of, known.ways))]
    known.ways += others
    return f"it changes what {others[0].place.path} leads to, too: {OF_COUNTS}" if others else ""


def _told(binding: Binding) -> str:
    what, values = difference(binding)
    if any(isinstance(each, torch.Tensor) and each.requires_grad for _, _, each in _changes_in(binding)):
        return f"it leaves a tensor with a graph in {what} for the next call: detach it"
    text = f"it changes {what}{f' ({values})' if values else ''}"
    return f"{text}: {OF_COUNTS}"


def _changes_in(binding: Binding) -> list[tuple[Place, Any, Any]]:
    """What has changed of a binding that no longer holds, with both values. Empty if a run could not do the same."""
    kind, holder, key, value, path = binding
    if kind in (ITEM, CELL, SLOT):
        place = Place(kind, holder, key, path)
        return [(place, value, place.get())]
    if kind != ITEMS or not issubclass(key, (dict, list, deque)):
        return []
    items = changed_items(binding) or []
    return [(Place(ITEM, holder, each, told), before, now) for each, before, now, told in items]


def _is_tensors(value: Any) -> bool:
    """True for a tensor without a graph and attributes, and for a container of such that holds constants besides."""
    tensors = [each for each in leaves(value) if not isinstance(each, PLAIN)]
    return bool(tensors) and all(
        isinstance(each, torch.Tensor) and is_ordinary(each) and not each.requires_grad and not fields_of(each)
        for each in tensors
    )


def given(args: tuple, places: Sequence[Place]) -> tuple:
    """The arguments of a run."""
    return (*args, *(each.get() for each in places))


def whole_run(replay: Any, tape: Any, fill: Callable[[tuple], Any], turn: Any) -> Callable[[tuple, dict], Any]:
    """What makes a run with what is in places, and gives NotImplemented where it must not be made.

    Where a run that has drawn random numbers gives up on its way, the function is to draw the same ones again.
    """

    def run(args: tuple, named: dict[str, Any]) -> Any:
        with turn:
            if not all(each.holds() for each in tape.guards):
                return NotImplemented
            state = torch.default_generator.get_state() if tape.rewinds else None
            found = replay.run(given(args, tape.given), named)
            if found is not NotImplemented:
                return fill(found)
            if state is not None and replay.why()[0] == "failure":
                torch.default_generator.set_state(state)
            return NotImplemented

    return run


def filler(template: Any, left: Sequence[tuple[Any, Any]]) -> Callable[[tuple], Any]:
    """What makes a result of the tensors of a run, and puts the others into their places."""
    if not left:
        return returned.filler(template)

    def fill(tensors: tuple) -> Any:
        result, values = filled((template, [value for _, value in left]), tensors)
        for (place, _), value in zip(left, values):
            place.put(value)
        return result

    return fill


def _release(watch: Watch, places: Sequence[Place], values: Sequence[Any]) -> None:
    """What is there may be another one in each call."""
    watch.bindings, watch.whole = (list(_released(each, places)) for each in (watch.bindings, watch.whole))
    tensors = set(map(id, leaves(tuple(values))))
    watch.tensors = [each for each in watch.tensors if id(each) not in tensors]


def _released(bindings: Iterable[Binding], places: Sequence[Place]) -> Iterator[Binding]:
    for each in bindings:
        there = [place for place in places if place.holder is each.holder]
        if each.kind == ITEMS:
            keys = {place.key for place in there if place.kind == ITEM}
            yield each._replace(value=_without(each, keys)) if keys else each
        elif not any(place.is_that_of(Place(*each[:3], "")) for place in there):
            yield each


def _without(binding: Binding, keys: set[Any]) -> tuple:
    if not issubclass(binding.key, dict):
        return tuple(ANYTHING if place in keys else each for place, each in enumerate(binding.value))
    pairs = zip(binding.value[::2], binding.value[1::2])
    return tuple(itertools.chain.from_iterable((key, ANYTHING if key in keys else each) for key, each in pairs))
