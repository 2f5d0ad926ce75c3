# SPDX-License-Identifier: MIT
"""Cases made of a kind of value, the place where it is kept, how a change reaches it, and the way from the step to it.

The folder ``corpus/product`` lists kinds, places and ways; its files say in their first lines how.
"""

from __future__ import annotations

import ast
import functools
import random
import re
from collections.abc import Iterable, Iterator
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
CALLS = 40
"""Of a script that is restarted."""
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
    beside: dict[str, str] = {}


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


def _places(of: str) -> dict[str, Place]:
    found = {}
    for name, text in blocks(file(of)).items():
        first, rest = _lines(text, 4)
        setup, *others = re.split(r"^--- (\S+)\n?", f"{rest}\n", flags=re.MULTILINE)
        found[name] = Place(*first, setup.strip("\n"), dict(zip(others[::2], others[1::2])))
    return found


PLACES = _places("places.txt")
PLACES_OF_RESTARTS = PLACES | _places("places_of_restarts.txt")
TIMES = blocks(file("times.txt"))
VERDICTS = FOLDER / "product" / "restarted.txt"
"""A line with kind and name for each of ``restarts()`` that is not the same."""
WAYS = {name: Way(*first, rest) for name, text in blocks(file("ways.txt")).items() for first, rest in [_lines(text, 2)]}


def text_of(kind: Kind, place_name: str, way_name: str, body: str, in_place: str = "", time: str = "") -> str:
    """The text of a case; without ``in_place`` the value is replaced, without ``time`` at call 30."""
    way = WAYS[way_name]
    values = {"{V}": f"({kind.value})", "{W}": f"({kind.other})", "{F}": way.function}
    place = Place(*(_filled(part, values) for part in PLACES_OF_RESTARTS[place_name][:-1]))
    use = kind.use.replace("@", place.read)
    parts = {"{P}": place.parameter, "{U}": use}
    made, rest = BODIES[body]
    of_step = _filled("{P}", parts) if way_name == "step" else ""
    step = f"@recorded\ndef step(x{of_step}):\n    y = {_filled(way.call, parts)}\n    {rest}"
    change = in_place.replace("@", place.reach) if in_place else place.replace
    middle = f"{place.setup}\n{_filled(way.setup, parts)}\n{step}\n"
    name = "alter" if time else "change"
    rest = _filled(TIMES[time], {"{C}": "alter()"}) if time else ""
    if place_name == "cell":
        inside = f"{middle}def {name}():\n    nonlocal held\n    {change}\nreturn step, {name}"
        return _with_setup(f"{made}\ndef make():\n{_indented(inside)}\nstep, {name} = make()\n{rest}")
    late = f"step.held = {values['{V}']}\n" if place_name == "attribute of the step" else ""
    if in_place and place_name == "global":
        change = f"global held; {change}"
    return _with_setup(f"{made}\n{middle}{late}def {name}():\n    {change}\n{rest}")


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


def _pairs(places: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    for name, kind in KINDS.items():
        for place in places:
            if name in _FUNCTIONS and any(word in place for word in _OF_CLASSES):
                continue
            yield name, place, ""
            for statement in kind.in_place:
                yield name, place, statement


def _is_python(place: str, statement: str) -> bool:
    """False for a statement that assigns to the value, where a call gives that: ``holder.get() *= 2``."""
    try:
        ast.parse(statement.replace("@", PLACES_OF_RESTARTS[place].reach))
    except SyntaxError:
        return False
    return True


def crossed(count: int, seed: int) -> dict[str, Script]:
    """``count`` cases of the product by name: the same ones for the same seed."""
    found = {}
    for numbers, name, place, statement in _ranked(PLACES, count, seed):
        way, body = _way(numbers), numbers.choice(list(BODIES))
        title = f"{name}, {place}, {statement or 'replaced'}, {way}, {body}"
        found[title] = Script(title, text_of(KINDS[name], place, way, body, statement), {}, family="product")
    return found


def restarts(count: int = 400, seed: int = 0) -> dict[str, Script]:
    """The same of the product that is restarted: in more places, and at several times, each as often as others."""
    found = {}
    for turn, (numbers, name, place, statement) in enumerate(_ranked(PLACES_OF_RESTARTS, count, seed)):
        way, body, time = _way(numbers), numbers.choice(list(BODIES)), list(TIMES)[turn % len(TIMES)]
        title = f"{name}, {place}, {statement or 'replaced'}, {time}, {way}, {body}"
        text = text_of(KINDS[name], place, way, body, statement, time)
        beside = PLACES_OF_RESTARTS[place].beside
        found[title] = Script(title, text, beside, CALLS, expected=_expected(title), family="product")
    return found


@functools.cache
def _known() -> dict[str, str]:
    lines = [line for line in VERDICTS.read_text().splitlines() if line and not line.startswith("#")]
    return {name: kind for kind, name in (line.split(": ", 1) for line in lines)}


def _expected(title: str) -> dict[str, str]:
    return {"restarted": _known()[title]} if title in _known() else {}


def write_verdicts(found: dict[str, str]) -> None:
    """Kinds by names."""
    head = [line for line in VERDICTS.read_text().splitlines() if line.startswith("#")]
    lines = sorted(f"{kind}: {name}" for name, kind in found.items() if kind != "same")
    VERDICTS.write_text("\n".join([*head, *lines]) + "\n")


def _way(numbers: random.Random) -> str:
    return "step" if numbers.random() < 0.4 else numbers.choice(list(WAYS)[1:])


def _ranked(places: Iterable[str], count: int, seed: int) -> Iterator[tuple[random.Random, str, str, str]]:
    """A small choice has each kind, replaced and changed in place, before it has one twice, and places in turn."""
    numbers = random.Random(seed)
    pairs = list(_pairs(places))
    numbers.shuffle(pairs)
    pairs = [each for each in pairs if _is_python(*each[1:])]
    turns: dict[tuple[str, bool], int] = {}
    seen: dict[str, int] = {}
    ranked = []
    for name, place, statement in pairs:
        turn = turns[name, bool(statement)] = turns.get((name, bool(statement)), 0) + 1
        seen[place] = seen.get(place, 0) + 1
        ranked.append((turn, seen[place], (name, place, statement)))
    ranked.sort(key=lambda each: each[:2])
    yield from ((numbers, *each) for _, _, each in ranked[:count])
