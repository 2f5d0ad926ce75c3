# SPDX-License-Identifier: MIT
"""Objects of torch that Fortran makes and calls: optimizers, schedulers, losses and what belongs to them."""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ...checkpoint import Checkpoint
from ...checkpoint.capture import Collector
from ...errors import FtnPytorchError, did_you_mean, summary
from ...script.conventions import Convention
from ...script.framework import TORCH
from ..base import Runner
from ..options import Options

_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_numbers = itertools.count(1)
_numbered: weakref.WeakValueDictionary[int, ObjectRunner] = weakref.WeakValueDictionary()


class ObjectRunner(Runner):
    """An object with a state, ``held``, and functions: those that a class lists in ``offered``, methods of its own or
    else of ``held``.

    Tensors reach them as they are, and options as keyword arguments (``plain_options``).
    """

    framework = TORCH
    device = None
    offered: tuple[str, ...] = ()

    def __init__(self, kind: str, held: Any) -> None:
        super().__init__(kind, Options())
        self.backend = "torch"
        self.held = held
        self._checkpoint = _OwnState()
        self._number = next(_numbers)
        _numbered[self._number] = self

    def number(self) -> int:
        """By which other objects are told of this one: ``numbered``."""
        return self._number

    def state(self) -> Any:
        """What a checkpoint keeps of it."""
        return self.held

    def find(self, name: str) -> Callable | None:
        if name not in (*self.offered, "number"):
            return None
        return getattr(self if hasattr(self, name) else self.held, name)

    def functions(self) -> list[str]:
        return list(self.offered)

    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        return self.require(name), Convention(one_list=False, has_out=False)

    def reload(self) -> None:
        raise FtnPytorchError("HOOK", f"{self.path} has no file that could be read again")

    def _kept(self, wanted: str) -> Checkpoint:
        return self._checkpoint.of({"state": self.state(), **self.attached()})


class _OwnState(Checkpoint):
    """The state of an object alone; the parameters that it trains are kept elsewhere."""

    def _check_kept(self, encoder: Collector, path: str) -> None:
        pass


def numbered(numbers: Any) -> list[ObjectRunner]:
    """The objects of these numbers."""
    return [_numbered[int(number)] for number in numbers]


def class_of(places: tuple[Any, ...], kind: str, base: type, what: str) -> type:
    """The class of torch of that name, derived from ``base``; ARGUMENT with the nearest name if there is none."""
    for place in places:
        found = getattr(place, kind, None)
        if isinstance(found, type) and issubclass(found, base) and found is not base:
            return found
    raise FtnPytorchError("ARGUMENT", f"torch has no {what} {kind!r}{did_you_mean(kind, classes(places, base))}")


def classes(places: tuple[Any, ...], base: type) -> list[str]:
    """Names of the classes that can be made."""
    return [
        name
        for place in places
        for name, value in vars(place).items()
        if isinstance(value, type) and issubclass(value, base) and value is not base and not name.startswith("_")
    ]


def make(kind: Any, args: tuple, options: Mapping[str, Any], label: str = "") -> Any:
    """``kind(*args, **options)``, in messages with the name of the class unless there is a label.

    SIGNATURE for an option that it does not have, or that is missing; ARGUMENT for a wrong value.
    """
    label = label or f"{kind.__module__}.{kind.__qualname__}"
    known = inspect.signature(kind).parameters
    own = {name: each for name, each in list(known.items())[len(args) :] if each.kind not in _ANY}
    takes_any = any(each.kind in _ANY for each in known.values())
    for name, value in options.items():
        if name not in own:
            if takes_any:
                continue
            near = did_you_mean(name, own)
            raise FtnPytorchError("SIGNATURE", f"{label} has no option {name!r}{near}; it has {', '.join(own)}")
        check_type(label, name, value, own[name].default)
    missing = [name for name, each in own.items() if each.default is each.empty and name not in options]
    if missing:
        if any("Callable" in str(own[name].annotation) for name in missing):
            raise FtnPytorchError(
                "ARGUMENT", f"{label} needs a Python function, {missing[0]}: make it in a script and step it there"
            )
        raise FtnPytorchError("SIGNATURE", f"{label} needs the option {', '.join(map(repr, missing))}")
    try:
        return kind(*args, **options)
    except (TypeError, ValueError, RuntimeError, AssertionError) as failure:
        given = ", ".join(f"{name}={value!r}" for name, value in options.items())
        text = f"{label} refuses {given or 'what it is given'}: {summary(failure)}"
        raise FtnPytorchError("ARGUMENT", text) from failure


def check_type(label: str, name: str, value: Any, before: Any) -> None:
    """ARGUMENT for a text in place of a number, or the other way round, told by the value it would replace."""
    is_text = isinstance(value, str)
    if isinstance(before, (bool, int, float)) and is_text:
        wanted = "a logical" if isinstance(before, bool) else "a number"
    elif isinstance(before, str) and not is_text:
        wanted = "a string"
    elif isinstance(before, tuple) and not (isinstance(value, (tuple, list)) and len(value) == len(before)):
        wanted = f"an array of {len(before)} numbers"
    else:
        return
    raise FtnPytorchError("ARGUMENT", f"the option {name!r} of {label} must be {wanted}, and is {value!r}")


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without tensors: arrays of Fortran, whose memory is not kept, become tuples of numbers."""
    return {name: _plain(value) for name, value in options.items()}


def _plain(value: Any) -> Any:
    if not hasattr(value, "tolist"):
        return value
    values = value.tolist()
    return tuple(values) if isinstance(values, list) else values
