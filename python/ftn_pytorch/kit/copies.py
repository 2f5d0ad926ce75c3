# SPDX-License-Identifier: MIT
"""Copies of samples, which may be memory of the simulation, whatever objects they come in."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections import deque
from types import FunctionType, MethodType
from typing import Any

import torch

from ..errors import FtnPytorchError
from ..values import python_types, user_objects

# What a step works with is no sample
_TOOLS = (torch.nn.Module, torch.optim.Optimizer, torch.Generator, type, FunctionType, MethodType, functools.partial)


def own(value: Any) -> Any:
    """A copy whose tensors and arrays share no memory with those of ``value``. Tensors come without their graph.

    Networks, optimizers and functions are passed on as they are. ARGUMENT for an object that cannot be copied.
    """
    return _own(value, {})


def _own(value: Any, made: dict[int, Any]) -> Any:
    if id(value) not in made:
        try:
            # with the value, whose number would be free again
            made[id(value)] = (_copy(value, made), value)
        except FtnPytorchError:
            raise
        except Exception as failure:
            kind = user_objects.name_of(type(value))
            raise FtnPytorchError(
                "ARGUMENT",
                f"Background: submit was given a {kind}, which cannot be copied ({failure}): pass its tensors",
            ) from failure
    return made[id(value)][0]


def _copy(value: Any, made: dict[int, Any]) -> Any:
    kind = type(value)
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, _TOOLS):
        return value
    if isinstance(value, tuple):
        parts = [_own(each, made) for each in value]
        return kind(*parts) if hasattr(value, "_fields") else kind(parts)
    if kind in (list, set, frozenset):
        return kind([_own(each, made) for each in value])
    if kind is deque:
        return deque([_own(each, made) for each in value], value.maxlen)
    if kind in python_types.NAMESPACES.values() or user_objects.is_plain(kind) or dataclasses.is_dataclass(kind):
        items = None if kind in python_types.NAMESPACES.values() else user_objects.content(value)
        fields = {name: _own(each, made) for name, each in user_objects.fields(value).items()}
        return user_objects.make(kind, fields, None if items is None else _own(items, made))
    if isinstance(value, dict):
        copied = copy.copy(value)
        copied.update({name: _own(each, made) for name, each in value.items()})
        return copied
    return copy.deepcopy(value)
