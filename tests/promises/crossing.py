# SPDX-License-Identifier: MIT
"""Cases made of a kind of value, the place where it is kept, how a change reaches it, and the way from the step to it.

The folder ``corpus/product`` lists kinds, places and ways; its files say in their first lines how.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from .scripts import FOLDER, Script, blocks

BODIES = {
    "predict": ("", "return y"),
    "train": (
        "net = nn.Linear(3, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)",
        "optimizer.zero_grad()\n    loss = net(y).square().mean()\n    loss.backward()\n    optimizer.step()\n"
        "    return loss",
    ),
    "adam": (
        "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\n"
        "optimizer = torch.optim.Adam(net.parameters(), lr=0.01, fused=True)",
        "optimizer.zero_grad()\n    loss = net(y).square().mean()\n    loss.backward()\n    optimizer.step()\n"
        "    return loss, y",
    ),
    "slope": (
        "weight = torch.ones(3, requires_grad=True)",
        "return torch.autograd.grad((y * weight).square().sum(), weight)[0]",
    ),
}
# a function that is the field of a class is a method
_FUNCTIONS = {"lambda", "function", "function with state"}
_OF_CLASSES = ("class", "slot", "descriptor")


class Kind(NamedTuple):
    """A value, another one, an expression of the first as ``@`` and of x, statements that change it in place."""

    value: str
    other: str
    use: str
    in_place: list[str]


class Place(NamedTuple):
    """Where a value is kept: how it is read, reached when it is changed, and replaced; what the function is given."""

    read: str
    reach: str
    replace: str
    parameter: str
    setup: str


class Way(NamedTuple):
    """A call that gives the expression, the function that has it, and what is defined for both."""

    call: str
    function: str
    setup: str


def file(name: str) -> str:
    return (FOLDER / "product" / name).read_text()


def _lines(text: str, count: int) -> tuple[list[str], str]:
    """The first lines of a text, and the rest."""
    *first, rest = f"{text.rstrip()}{chr(10) * count}".split("\n", count)
    return first, rest.strip("\n")


def _kind(text: str) -> Kind:
    (value, other, use), rest = _lines(text, 3)
    return Kind(value, other, use, rest.splitlines())


KINDS = {name: _kind(text) for name, text in blocks(file("kinds.txt")).items()}
PLACES = {
    name: Place(*first, rest) for name, text in blocks(file("places.txt")).items() for first, rest in [_lines(text, 4)]
}
WAYS = {name: Way(*first, rest) for name, text in blocks(file("ways.txt")).items() for first, rest in [_lines(text, 2)]}


def text_of(kind: Kind, place_name: str, way_name: str, body: str, in_place: str = "") -> str:
    """The text of a case; without ``in_place`` the value is replaced."""
    way = WAYS[way_name]
    values = {"{V}": f"({kind.value})", "{W}": f"({kind.other})", "{F}": way.function}
    place = Place(*(_filled(part, values) for part in PLACES[place_name]))
    use = kind.use.replace("@", place.read)
    parts = {"{P}": place.parameter, "{U}": use}
    made, rest = BODIES[body]
    of_step = _filled("{P}", parts) if way_name == "step" else ""
    step = f"@recorded\ndef step(x{of_step}):\n    y = {_filled(way.call, parts)}\n    {rest}"
    change = in_place.replace("@", place.reach) if in_place else place.replace
    middle = f"{place.setup}\n{_filled(way.setup, parts)}\n{step}\n"
    if place_name == "cell":
        inside = f"{middle}def change():\n    nonlocal held\n    {change}\nreturn step, change"
        return _with_setup(f"{made}\ndef make():\n{_indented(inside)}\nstep, change = make()\n")
    late = f"step.held = {values['{V}']}\n" if place_name == "attribute of the step" else ""
    if in_place and place_name == "global":
        change = f"global held; {change}"
    return _with_setup(f"{made}\n{middle}{late}def change():\n    {change}\n")


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\{[A-Z]\}", lambda found: values.get(found[0], found[0]), text)


def _with_setup(text: str) -> str:
    """With the parts of ``setup.txt`` that it names: each part more has to be compared after each call."""
    for part in reversed(file("setup.txt").split("\n\n")[1:]):
        name = re.search(r"^(?:class |def )?(\w+)", part, re.MULTILINE)
        if name and re.search(rf"\b{name[1]}\b", text):
            text = f"{part}\n{text}"
    return text


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _pairs() -> Iterator[tuple[str, str, str]]:
    for name, kind in KINDS.items():
        for place in PLACES:
            if name in _FUNCTIONS and any(word in place for word in _OF_CLASSES):
                continue
            yield name, place, ""
            for statement in kind.in_place:
                yield name, place, statement


def crossed(count: int, seed: int) -> dict[str, Script]:
    """``count`` cases of the product by name: the same ones for the same seed.

    A small choice has each kind, replaced and changed in place, before it has one twice, and places in turn.
    """
    numbers = random.Random(seed)
    pairs = list(_pairs())
    numbers.shuffle(pairs)
    turns: dict[tuple[str, bool], int] = {}
    places: dict[str, int] = {}
    ranked = []
    for name, place, statement in pairs:
        turn = turns[name, bool(statement)] = turns.get((name, bool(statement)), 0) + 1
        places[place] = places.get(place, 0) + 1
        ranked.append((turn, places[place], (name, place, statement)))
    ranked.sort(key=lambda each: each[:2])
    found = {}
    for _, _, (name, place, statement) in ranked[:count]:
        way = "step" if numbers.random() < 0.4 else numbers.choice(list(WAYS)[1:])
        body = numbers.choice(list(BODIES))
        title = f"{name}, {place}, {statement or 'replaced'}, {way}, {body}"
        found[title] = Script(title, text_of(KINDS[name], place, way, body, statement), {}, family="product")
    return found
