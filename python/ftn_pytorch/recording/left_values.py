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
from typing import Any, NamedTuple

import torch

from ..values.held import fields_of
from . import returned
from .arguments import leaves
from .bindings import ANYTHING, CELL, ITEM, ITEMS, SLOT, Binding, Watch
from .changes import changed_items, difference
from .recorder import Unrecordable
from .returned import PLAIN, filled
from .tape import is_ordinary

_MODES = (bool, str, type(None))


class Place(NamedTuple):
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
            return _base_of(self.holder).__getitem__(self.holder, self.key)
        except (LookupError, AttributeError, ValueError):
            return None

    def put(self, value: Any) -> None:
        """No code of a user runs."""
        if self.kind == CELL:
            self.holder.cell_contents = value
        elif self.kind == SLOT:
            object.__setattr__(self.holder, self.key, value)
        else:
            _base_of(self.holder).__setitem__(self.holder, self.key, value)

    def is_that_of(self, other: Place) -> bool:
        return self.kind == other.kind and self.holder is other.holder and self.key == other.key


def found(watch: Watch, places: list[Place], values: Sequence[Any]) -> list[tuple[Place, Any]]:
    """What the call has left in places, which held these values before it. Those of other tensors are put into
    ``places``, for the next attempt to record it."""
    _release(watch, places, values)
    left = [(place, place.get()) for place in places]
    new: list[Place] = []
    for each in watch.changed():
        changes = _changes_in(each)
        for place, before, now in changes:
            if isinstance(before, _MODES) and isinstance(now, _MODES):
                left.append((place, now))
            elif _is_tensors(before) and _is_tensors(now):
                new += [] if any(place.is_that_of(other) for other in new) else [place]
            else:
                changes = []
        if not changes:
            raise Unrecordable(_told(each))
    if new:
        places += new
        raise Unrecordable(f"it puts another tensor into {new[0].path} in each call")
    return left


def _told(binding: Binding) -> str:
    what, values = difference(binding)
    if any(isinstance(each, torch.Tensor) and each.requires_grad for _, _, each in _changes_in(binding)):
        return f"it leaves a tensor with a graph in {what} for the next call: detach it"
    text = f"it changes {what}{f' ({values})' if values else ''}"
    return f"{text}: what is no tensor must not change in a call"


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


def filler(template: Any, left: Sequence[tuple[Place, Any]]) -> Callable[[tuple], Any]:
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


def _base_of(holder: Any) -> Any:
    return next(each for each in (dict, list, deque) if isinstance(holder, each))
