# SPDX-License-Identifier: MIT
"""What a program without Python needs of a checkpoint to go on from it: the entries of its archive beside the arrays.

``numbers``: those of optimizers by name ("opt.0.lr"). ``generator``: the state of torch's generator of the host.
``holes``: places in the text of the state where these stand, ``(begin, end, ("number", name))`` or ``(begin, end,
("generator",))``: such a program writes the text again, with what they are then.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from ..values import optimizer_settings, random_states
from ..values.encoding import SAME, TAG
from . import archive
from .capture import Collector

Hole = tuple[str, ...]
Piece = str | tuple


def entries(encoder: Collector, state: dict[str, Any], arrays: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text of a state, and the entries. ``state``: what was encoded, with random states of torch among it."""
    named = optimizer_settings.names_of(encoder.optimizers())
    mark = uuid.uuid4().hex
    random = state["random"]["torch"]
    places = [(random, "data", f"{mark}generator{mark}")]
    for path, tree in encoder.trees.items():
        places += _places(tree, encoder.optimizers()[path], named, mark)
    before = [holder[key] for holder, key, _ in places]
    # A copy of all of the state to put marks into would cost more than all the rest.
    for holder, key, text in places:
        holder[key] = text
    pieces = pieces_of(archive.text_of(state, arrays), mark)
    for (holder, key, _), value in zip(places, before):
        holder[key] = value
    numbers = {name: source.value() for name, source in named.items()}
    generator = random_states.to_tensor(base64.b64decode(random["data"]))
    text, holes = filled(pieces, values_of(numbers, generator))
    return text, {"numbers": numbers, "generator": generator, "holes": holes}


def _places(tree: Any, optimizer: Any, named: Mapping[str, Any], mark: str) -> Iterator[tuple[Any, Any, str]]:
    """Where numbers stand in the tree of an optimizer: holder, key, and the mark of what goes there."""
    # What two ways lead to is told with a label, by pairs, and at its second place by this label alone.
    trees = tree["param_groups"]
    trees = trees["items"] if isinstance(trees, dict) else trees
    groups = {id(group): each for group, each in zip(optimizer.param_groups, trees)}
    for name, source in named.items():
        group = groups.get(id(source.group), {TAG: SAME})
        if group.get(TAG) == SAME:
            continue
        holder, key = group, source.key
        if TAG in group:
            holder, key = next(pair for pair in group["items"] if pair[0] == source.key), 1
        if source.item >= 0:
            holder, key = holder[key]["items"], source.item
        yield holder, key, f"{mark}number {name}{mark}"


def pieces_of(text: str, mark: str) -> list[Piece]:
    """A text in pieces, with a hole where a mark stands; a number stands without quotes."""
    found: list[Piece] = []
    for place, part in enumerate(re.split(f'("?{mark}[^"]*?{mark}"?)', text)):
        if place % 2 == 0:
            found.append(part)
            continue
        inner = part.strip('"')[len(mark) : -len(mark)]
        if inner == "generator":
            found += ['"', ("generator",), '"']
        else:
            found.append(tuple(inner.split(" ", 1)))
    return found


def filled(pieces: list[Piece], values: Mapping[Hole, str]) -> tuple[str, list[tuple[int, int, Hole]]]:
    """The text, and where its holes are."""
    text, holes = "", []
    for piece in pieces:
        part = piece if isinstance(piece, str) else values[piece]
        if not isinstance(piece, str):
            holes.append((len(text), len(text) + len(part), piece))
        text += part
    return text, holes


def values_of(numbers: Mapping[str, float], generator: Any) -> dict[Hole, str]:
    """What stands in the holes of a state."""
    values: dict[Hole, str] = {("number", name): json.dumps(float(value)) for name, value in numbers.items()}
    return {**values, ("generator",): base64.b64encode(random_states.to_bytes(generator)).decode()}
