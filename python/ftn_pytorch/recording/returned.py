# SPDX-License-Identifier: MIT
"""What a function returns: containers, which are made anew in each run, and the tensors in them."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..values.held import fields_of
from ..values.kinds import base_of
from ..values.user_objects import fields

PLAIN = (bool, int, float, complex, str, bytes, type(None))


def is_same_value(one: Any, other: Any) -> bool:
    """The same object, or equal numbers and texts of one type, as bindings are compared: 0.0 is not -0.0."""
    return one is other or (type(one) is type(other) and isinstance(one, PLAIN) and repr(one) == repr(other))


@dataclasses.dataclass(frozen=True)
class Item:
    """Stands for a tensor of a result."""

    number: int


class Read(Item):
    """Stands for a number in a tensor of a result."""


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A container of the same class, with what ``change`` makes of its items; None for what is no container.

    Containers are tuples, lists, dicts, and objects that are dataclasses or dicts, whose own code is not run. A tuple
    of an own class is none, unless it is a named one without other fields.
    """
    kind: Any = type(value)
    if isinstance(value, tuple):
        # a named one, a plain one, or one of torch.return_types
        make = getattr(kind, "_make", kind if kind is tuple or hasattr(kind, "n_sequence_fields") else None)
        return make([change(each) for each in value]) if make and not fields_of(value) else None
    if kind is list:
        return [change(each) for each in value]
    if kind is dict:
        return {name: change(each) for name, each in value.items()}
    base = base_of(kind)
    if base not in (dict, OrderedDict) and not (base is object and dataclasses.is_dataclass(value)):
        return None
    # such as the results of transformers, which are both
    made = base.__new__(kind)
    for name, each in fields(value).items():
        object.__setattr__(made, name, change(each))
    for name in base.__iter__(value) if base is not object else ():
        base.__setitem__(made, name, change(base.__getitem__(value, name)))
    return made


def parts(value: Any) -> Iterator[Any]:
    """What the containers of a result hold, those in them included."""
    inside: list[Any] = []
    if isinstance(value, (torch.Tensor, *PLAIN)) or mapped(inside.append, value) is None:
        yield value
    for each in inside:
        yield from parts(each)


def filler(template: Any) -> Callable[[tuple], Any]:
    """``filled`` for one template."""
    if template == Item(0):
        return operator.itemgetter(0)
    if type(template) is tuple and template == tuple(map(Item, range(len(template)))):
        return lambda tensors: tensors
    return functools.partial(filled, template)


def filled(template: Any, tensors: tuple) -> Any:
    """A result."""
    if isinstance(template, Item):
        tensor = tensors[template.number]
        return tensor.item() if isinstance(template, Read) else tensor
    found = None if isinstance(template, PLAIN) else mapped(lambda each: filled(each, tensors), template)
    return template if found is None else found
