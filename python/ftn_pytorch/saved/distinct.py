# SPDX-License-Identifier: MIT
"""Which recordings of a function go into a file, which cannot ask the names of a script what they are now.

In a script that decides between recordings for the same arguments: ``train()`` and ``eval()``, numbers in names, modes
of torch. A file gets the one that holds now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..recording.operations import address_of
from ..recording.places import difference
from ..recording.tape import Tape
from ..recording.traced_numbers import NUMBER
from ..system import extension
from .any_batch import is_equal
from .portable import Plain, Unsavable


def distinct(found: Sequence[tuple[Tape, Plain]]) -> list[tuple[Tape, Plain]]:
    """Those that arguments and state tell apart, the oldest first. Unsavable if nothing tells which one is meant."""
    groups: list[list[tuple[Tape, Plain]]] = []
    for tape, plain in found:
        alike = next((each for each in groups if any(_are_alike(plain, other) for _, other in each)), None)
        if alike is None:
            groups.append([(tape, plain)])
        elif not any(is_equal(plain, other) for _, other in alike):
            alike.append((tape, plain))
    kept = []
    for group in groups:
        holding = [each for each in group if len(group) == 1 or _holds(each[0])]
        if not holding:
            raise Unsavable(
                f"it has {len(group)} recordings for the same arguments, made with other values of names or modes of "
                "torch, and none holds now: call it as the file is to run it, then save it"
            )
        kept.append(holding[-1])
    all_ = [plain for _, plain in kept]
    return [(tape, _without_needless(plain, all_)) for tape, plain in kept]


def changes(tape: Tape) -> list[tuple[str, str]]:
    """Plain values in names that are others now than in a recording, which may come back: what, and both values.

    Unsavable for a recording that the script would not use any more.
    """
    first = extension.module().first_change
    found = [difference(each) for each in tape.bindings if first([each]) >= 0]
    for what, values in found:
        if not values:
            raise Unsavable(f"{what} is another one since it was recorded: call it again, then save it")
    if [address_of(each) for (each,) in tape.memory] != tape.addresses:
        raise Unsavable("a tensor has other memory since it was recorded: call it again, then save it")
    if (kind := tape.default_type) != torch.get_default_dtype():
        raise Unsavable(f"it was recorded with the default type {kind}, which is another one now")
    return found


def _holds(tape: Tape) -> bool:
    return tape.modes == extension.module().modes() and extension.module().first_change(tape.bindings) < 0


def _are_alike(one: Plain, two: Plain) -> bool:
    """Whether there are arguments for which a file could take either."""
    return _take_the_same(one, two) and not (_are_other_ways(one, two) or _have_other_gradients(one, two))


def _take_the_same(one: Plain, two: Plain) -> bool:
    return is_equal(_signature(one), _signature(two))


def _signature(plain: Plain) -> list[Any]:
    """What arguments are compared with. Tensors that were one tensor share a slot."""
    slots = [each[2] for each in plain["inputs"] if each[1] == "tensor"]
    described = [each[3:] if each[1] == "tensor" else each[2] for each in plain["inputs"]]
    return [*described, [slots.index(each) for each in slots]]


def _are_other_ways(one: Plain, two: Plain) -> bool:
    """Whether the same comparison of numbers comes out one way in the first, and the other way in the second."""
    ways = {_comparison(one, each): each[3] for each in one["branches"]}
    return any(ways.get(_comparison(two, each), each[3]) != each[3] for each in two["branches"])


def _comparison(plain: Plain, branch: tuple) -> str:
    """With numbers by what they are, counts by their memory; their places in two recordings may be others."""
    numbers = [(kind, each.data_ptr() if kind == "count" else each, *more) for kind, each, *more in plain["numbers"]]
    sides = [[(code, numbers[what] if code == NUMBER else what) for code, what in side] for side in branch[1:3]]
    return repr((branch[0], sides))


def _have_other_gradients(one: Plain, two: Plain) -> bool:
    there = {name: slot >= 0 for name, slot in one["before"]}
    return any(there.get(name, slot >= 0) != (slot >= 0) for name, slot in two["before"])


def _without_needless(plain: Plain, all_: Sequence[Plain]) -> Plain:
    """A gradient must be absent only where another recording is there for the case that it is not."""
    others = [each for each in all_ if each is not plain and _take_the_same(each, plain)]
    there = {name for each in others for name, slot in each["before"] if slot >= 0}
    return {**plain, "before": [(name, slot) for name, slot in plain["before"] if slot >= 0 or name in there]}
