# SPDX-License-Identifier: MIT
"""Arguments of a call: tensors and other values in containers of Python, and whether a call leaves them alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from ..system import extension, private_names
from ..values import user_objects
from ..values.held import fields_of
from .operations import address_of, is_ordinary
from .returned import is_same_value

_RETURN_IT = "return what is to go there, and put it there outside, or write into the tensors that are there"


class Call(NamedTuple):
    """One call of a function."""

    function: Callable
    args: tuple
    named: dict[str, Any]


class Given(NamedTuple):
    """An argument, or an item of one that is a container."""

    name: str
    """Of the parameter; empty for an item, and where there is none."""
    value: Any
    """Other than a tensor."""
    dtype: Any = None
    """Of a tensor."""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


def leaves(value: Any) -> Iterator[Any]:
    """What containers hold, in the order of the extension."""
    if type(value) in (tuple, list):
        for each in value:
            yield from leaves(each)
    elif type(value) is dict:
        for each in value.values():
            yield from leaves(each)
    else:
        yield value


def _by_name(call: Call) -> list[tuple[str, Any]]:
    """What a call is given; without a name for what has none."""
    try:
        parameters = list(inspect.signature(call.function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [each.name if each.kind is not each.VAR_POSITIONAL else "" for each in parameters]
    names += [""] * len(call.args)
    return [*zip(names, call.args), *call.named.items()]


def arguments_of(call: Call) -> list[Given]:
    """What a call is given, in the order of ``leaves``."""
    found: list[Given] = []
    for name, value in _by_name(call):
        for leaf in leaves(value):
            own = name if leaf is value else ""
            if isinstance(leaf, torch.Tensor) and is_ordinary(leaf):
                found.append(Given(own, None, leaf.dtype, tuple(leaf.shape), leaf.stride()))
            else:
                found.append(Given(own, leaf))
    return found


def tensors_in(args: tuple, named: dict[str, Any]) -> list[Any]:
    return [leaf for leaf in leaves((args, named)) if isinstance(leaf, torch.Tensor)]


class Held:
    """What the arguments of a call hold before it."""

    def __init__(self, call: Call) -> None:
        self._known = [(name, value, list(_parts_of(value))) for name, value in _by_name(call)]

    def difference(self) -> str:
        """What the call has changed, other than elements of tensors; empty for nothing."""
        for name, value, before in self._known:
            now = list(_parts_of(value))
            if len(now) != len(before) or not all(map(is_same_value, before, now)):
                what = "other contents"
                if isinstance(value, torch.Tensor):
                    what = "other memory" if now[1] != before[1] else "other attributes"
                return f"it gives an argument {what} ({name or type(value).__name__}): {_RETURN_IT}"
        return ""


def _parts_of(value: Any) -> Iterator[Any]:
    """The containers of an argument, their keys and what they hold, and the memory of tensors."""
    yield value
    if type(value) in (tuple, list):
        for each in value:
            yield from _parts_of(each)
    elif type(value) is dict:
        for key, each in value.items():
            yield key
            yield from _parts_of(each)
    elif isinstance(value, torch.Tensor):
        yield address_of(value)
        yield type(value)
        for field in fields_of(value).items():
            yield from field


def key_of(args: tuple, named: dict[str, Any]) -> Any:
    """What decides on which recording a call is like; the extension compares the same."""
    return (_described((args, named)), *extension.module().modes())


def _described(value: Any) -> tuple:
    if type(value) in (tuple, list):
        return (type(value), *map(_described, value))
    if type(value) is dict:
        return tuple((name, _described(each)) for name, each in value.items())
    if isinstance(value, torch.Tensor):
        shape = (value.shape, value.stride()) if is_ordinary(value) else ()
        return type(value), shape, value.dtype, value.device, value.requires_grad, value.is_inference()
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, complex):
        return type(value), value.real.hex(), value.imag.hex()
    return type(value), value if isinstance(value, (int, str, bytes)) else id(value)


def is_followed(args: tuple, named: dict[str, Any]) -> bool:
    """True where gradients with respect to arguments are wanted, or a transform of torch.func is at work."""
    if private_names.is_transformed():
        return True
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in _given((args, named), set()))


def _given(value: Any, seen: set[int]) -> Iterator[Any]:
    """Tensors in arguments, and in the fields of objects among them."""
    for leaf in leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield leaf
        elif user_objects.is_plain(type(leaf)) and id(leaf) not in seen:
            seen.add(id(leaf))
            yield from _given((user_objects.fields(leaf), user_objects.content(leaf)), seen)
