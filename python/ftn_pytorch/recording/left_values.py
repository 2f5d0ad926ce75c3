# SPDX-License-Identifier: MIT
"""What a function leaves in names for its next call: another tensor, as a hidden state, or another mode.

Each run puts the same there. A tensor that was there before the call is given to the recording like one more argument,
so it may be another object in each call; shape, strides and type stay. A mode (a bool, a text, None) is a binding: that
a call goes from eval() to train() is another recording than that it goes from train() to train().
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..system import extension
from ..values.held import fields_of
from ..values.walk import By, Edge
from . import collectives, returned
from .arguments import leaves
from .binding import ANYTHING, CELL, ITEM, ITEMS, SLOT, Binding
from .bindings import Watch
from .following import OF_COUNTS, Following, Known, Way
from .operations import is_ordinary
from .places import Place, changes_in, difference
from .recorder import OF_NUMBER, Unrecordable
from .returned import PLAIN, filled
from .tape import Tape

_MODES = (bool, str, type(None))
_NUMBERS = (int, float)


def found(watch: Watch, known: Known, values: Sequence[Any], following: Following) -> list[tuple[Any, Any]]:
    """What the call has left in places, those of tensors held these values before it. What is found anew is put into
    ``known``, for the next attempt to record it."""
    _release(watch, [*known.tensors, *known.numbers], values)
    left: list[tuple[Any, Any]] = [(place, place.get()) for place in known.tensors]
    new = ""
    for each in watch.changed():
        changes = changes_in(each)
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
    if following.footprints is None and any(each.value is not None for each in following.taken):
        known.takes_numbers = True
        raise Unrecordable(OF_NUMBER)
    return [*left, *following.found(watch)]


def _grows(binding: Binding, changes: Sequence[tuple[Place, Any, Any]]) -> bool:
    """Whether items of a list are new, and no tensors that a run could put in their places."""
    is_list = binding.kind == ITEMS and type(binding.holder) in (list, deque)
    return is_list and (len(binding.holder) > len(binding.value) or any(type(now) in _NUMBERS for *_, now in changes))


def _note_item(place: Place, watch: Watch, known: Known) -> bool:
    """A number in a dict. False where that is reached by more than names."""
    names = watch.edges.get(id(place.holder), []) if type(place.holder) is dict else []
    return _note([(each, place.key) for each in names], place.get(), known)


def _note_list(holder: Any, watch: Watch, known: Known) -> bool:
    """False where a list is reached by more than names and keys of dicts."""
    found: list[tuple[Edge, Any]] = []
    for edge in watch.edges.get(id(holder), []):
        is_item = edge.by == By.ITEM and type(edge.holder) is dict
        found += [(each, edge.key) for each in watch.edges.get(id(edge.holder), [])] if is_item else [(edge, None)]
    return _note(found, holder, known)


def _note(found: list[tuple[Edge, Any]], to: Any, known: Known) -> bool:
    ways = []
    for name, key in found:
        if name.by not in (By.GLOBAL, By.FIELD, By.CELL) or name.holder is None:
            return False
        kind = CELL if name.by == By.CELL else ITEM if isinstance(name.holder, dict) else SLOT
        ways.append(Way(Place(kind, name.holder, None if kind == CELL else name.key, name.path), key, to))
    known.ways += ways
    return bool(ways)


def _other_names(watch: Watch, known: Known) -> str:
    """What has got another name since the attempt that has found it; that name is noted."""
    now = Known()
    counted = {id(way.place.get()) for way in known.ways if way.is_number}
    for place in known.numbers:
        if id(place.holder) in counted and id(place.holder) in watch.edges and not _note_item(place, watch, now):
            raise Unrecordable(f"it changes {place.path}, to which more than names leads: {OF_COUNTS}")
    for way in known.lists.values():
        if id(way.to) in watch.edges and not _note_list(way.to, watch, now):
            raise Unrecordable("a list to which it appends is reached by more than names and keys of dicts")
    others = [each for each in now.ways if not any(map(each.is_that_of, known.ways))]
    known.ways += others
    return f"it changes what {others[0].place.path} leads to, too: {OF_COUNTS}" if others else ""


def _told(binding: Binding) -> str:
    what, values = difference(binding)
    if any(isinstance(each, torch.Tensor) and each.requires_grad for _, _, each in changes_in(binding)):
        return f"it leaves a tensor with a graph in {what} for the next call: detach it"
    text = f"it changes {what}{f' ({values})' if values else ''}"
    return f"{text}: {OF_COUNTS}"


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


def run_of(runner: Any, replay: Any, tape: Tape, turn: Any) -> Callable[[tuple, dict], Any]:
    """What makes a run with what is in places, and gives NotImplemented where it must not be made.

    turn: held from the question what counts are to what the run adds to them, since other threads count with them, too.
    Where a run that has drawn random numbers gives up on its way, the function is to draw the same ones again.
    """
    of_tensors, fill = runner.run, _filler(tape)
    if tape.rewinds:
        # a run that waits for other ranks must not keep other threads waiting, which these may need
        keeps_lock = not collectives.asks_ranks(tape)
        rewind = extension.module().run_or_rewind
        of_tensors = functools.partial(rewind, torch.default_generator, of_tensors, replay.why, keeps_lock)

    def run(args: tuple, named: dict[str, Any]) -> Any:
        found = of_tensors(args, named)
        return found if found is NotImplemented else fill(found)

    def run_with_places(args: tuple, named: dict[str, Any]) -> Any:
        return run(given(args, tape.given), named)

    def run_in_turn(args: tuple, named: dict[str, Any]) -> Any:
        with turn:
            return run_with_places(args, named) if all(each.holds() for each in tape.guards) else NotImplemented

    if tape.guards:
        return run_in_turn
    return run_with_places if tape.given else run


def _filler(tape: Tape) -> Callable[[tuple], Any]:
    """What makes a result of the tensors of a run, and puts the others into their places."""
    if not tape.left:
        return returned.filler(tape.template)

    def fill(tensors: tuple) -> Any:
        result, values = filled((tape.template, [value for _, value in tape.left]), tensors)
        for (place, _), value in zip(tape.left, values):
            place.put(value)
        return result

    return fill


def _release(watch: Watch, places: Sequence[Place], values: Sequence[Any]) -> None:
    """What is there may be another one in each call."""
    watch.release(lambda each: _released(each, places))
    tensors = set(map(id, leaves(tuple(values))))
    watch.tensors = [each for each in watch.tensors if id(each) not in tensors]


def _released(binding: Binding, places: Sequence[Place]) -> Binding | None:
    there = [place for place in places if place.holder is binding.holder]
    if binding.kind != ITEMS:
        return None if any(place.is_that_of(Place(*binding[:3], "")) for place in there) else binding
    keys, value = {place.key for place in there if place.kind == ITEM}, list(binding.value)
    is_dict = issubclass(binding.key, dict)
    for place, key in enumerate(value[::2] if is_dict else range(len(value))) if keys else ():
        if key in keys:
            value[2 * place + 1 if is_dict else place] = ANYTHING
    return binding._replace(value=tuple(value))
