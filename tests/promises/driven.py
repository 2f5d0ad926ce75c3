# SPDX-License-Identifier: MIT
"""Where a script runs that a Fortran program calls: what the next call is given, and what came back.

``TAIL`` has two functions that the program finds beside those of the script.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .plain import Raised, kept_settings, turns_of
from .scripts import Script
from .state import state_of, tensors_of

TAIL = """
def ftn_next(rank, _kept=[]):
    if not _kept:
        from promises.driven import Driven
        _kept.append(Driven(globals(), __file__, rank))
    return _kept[0].next()
def ftn_saw(*what):
    return ftn_next.__defaults__[0][0].saw(*what)
"""
TYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "complex64", "complex128", "bool")
"""In the order of items.fypp, from 1 on."""
TEXT, NUMBER, READ, WRITTEN, _, WIDER = range(6)


class Given(NamedTuple):
    """What plain Python gives for a call: names and values of results, or ``Raised``; which arguments have changed.

    ``wider``: which values are of a type that Fortran does not have, and are here in a wider one.
    """

    names: list[str]
    values: list[Any] | Raised
    wider: list[bool]
    changed: list[bool]


class Came(NamedTuple):
    """What Fortran has after a call."""

    status: int
    said: str
    is_kept: bool
    values: list[Any]
    arguments: list[Any]


class Work(NamedTuple):
    """``given``: by rank and call."""

    script: Script
    varied: str
    given: list[list[Given]]


class Driven:
    """The calls of one script on a rank. In a file "seenRANK" beside it is what came of them."""

    def __init__(self, module: dict[str, Any], file: str, rank: int) -> None:
        self._folder, self._rank, self._module = Path(file).parent, rank, module
        self._work: Work = pickle.loads((self._folder / "work").read_bytes())
        self._settings = kept_settings()
        self._settings.__enter__()
        self._turns: Iterator = turns_of(module, self._work.script, self._work.varied, rank=rank)
        self._seen: list[Came] = []
        self._result: Any = None

    def next(self) -> tuple:
        """How many arguments and results there are, and what each is like; the arguments, and names of the results."""
        try:
            self._args = self._turns.send(self._result)
        except StopIteration:
            self._end()
            return (torch.tensor([-1], device="cpu"),)
        given = self._work.given[self._rank][len(self._seen)]
        self._given = given
        values = [] if isinstance(given.values, Raised) else given.values
        # a tensor without axes that is read arrives as a number
        ways = [
            WRITTEN if changed or not getattr(each, "ndim", 1) else READ
            for each, changed in zip(self._args, given.changed)
        ]
        ways += [WIDER if each else WRITTEN for each in given.wider]
        described = list(map(_description, [*self._args, *values], ways))
        plan = [len(self._args), len(values), *(number for each in described for number in each)]
        return torch.tensor(plan, device="cpu"), *map(_sent, self._args), *given.names

    def saw(self, status: int, said: str, is_kept: bool, *what: Any) -> None:
        """``what``: the arguments, and the results where there are any."""
        values = [_like(*each) for each in zip(what[len(self._args) :], self._given.values)] if status == 0 else []
        arguments = [_like(*each) for each in zip(what, self._args)]
        self._seen.append(Came(status, said, is_kept, list(map(state_of, values)), list(map(state_of, arguments))))
        self._result = Raised(said) if status else values[0] if len(values) == 1 else values

    def _end(self) -> None:
        tensors = tensors_of({name: each for name, each in self._module.items() if not name.startswith("ftn_")})
        self._settings.__exit__()
        (self._folder / f"seen{self._rank}").write_bytes(pickle.dumps((self._seen, tensors)))


def _description(value: Any, access: int) -> list[int]:
    """Place in TYPES, what is done to it, rank, extents in the order of Fortran."""
    if isinstance(value, str):
        return [0, TEXT, 0, len(value.encode()), 1, 1, 1]
    if not isinstance(value, torch.Tensor):
        return [TYPES.index(_type_of(value)) + 1, NUMBER if access == READ else access, 0, 1, 1, 1, 1]
    extents = [*reversed(value.shape), *[1] * (4 - value.ndim)]
    return [TYPES.index(str(value.dtype).removeprefix("torch.")) + 1, access, value.ndim, *extents]


def _type_of(number: Any) -> str:
    return {bool: "bool", int: "int64", float: "float64", complex: "complex128"}[type(number)]


def _sent(value: Any) -> Any:
    """An argument on its way to Fortran: arrays that have axes, or a text."""
    if isinstance(value, str):
        return value
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().contiguous().reshape(value.shape or (1,))
    return torch.tensor([value], dtype=getattr(torch, _type_of(value)), device="cpu")


def _like(value: Any, other: Any) -> Any:
    """What came from Fortran, in the form of what plain Python has; a copy."""
    if isinstance(value, str):
        return value.rstrip()
    value = value.clone()
    return value.reshape(other.shape) if isinstance(other, torch.Tensor) else value.item()
