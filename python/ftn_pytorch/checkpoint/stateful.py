# SPDX-License-Identifier: MIT
"""Live objects: which values have a state, and how it is read and written.

An object has a state if its class has ``state_dict`` and ``load_state_dict`` (modules, optimizers, schedulers,
GradScaler, and whatever a script defines so), or if it is a random generator. Everything else is a plain value.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from ..values import is_tensor, loaded, python_types, random_states, user_objects
from ..values.contents import keeps_state
from ..values.walk import Kind, Walk


class Access(NamedTuple):
    """How the state of an object is read and written."""

    get: Callable[[], Any]
    put: Callable[[Any], Any]


def access_to(value: Any) -> Access | None:
    """None for a value without a state of its own."""
    kind = type(value)
    if not keeps_state(kind):
        return None
    if hasattr(kind, "load_state_dict"):
        return Access(value.state_dict, value.load_state_dict)
    if isinstance(value, random.Random):
        return Access(value.getstate, value.setstate)
    torch = loaded("torch")
    if torch is not None and isinstance(value, torch.Generator):
        return Access(
            lambda: random_states.to_bytes(value.get_state()),
            lambda state: value.set_state(random_states.to_tensor(state)),
        )
    if isinstance(value, loaded("numpy").random.RandomState):
        return Access(lambda: value.get_state(legacy=False), value.set_state)
    bits = value.bit_generator
    return Access(lambda: bits.state, lambda state: setattr(bits, "state", state))


def is_namespace(value: Any) -> bool:
    """True for SimpleNamespace and what argparse makes."""
    return type(value) in python_types.NAMESPACES.values()


def holds(value: Any, wanted: Callable[[Any], bool]) -> bool:
    """True if that is so for a value, or for something in its containers and objects of a user's own classes.
    Objects with a state stay closed.
    """
    walk = Walk([("", value)], enters=lambda each, kind: _is_open(each, kind) and not keeps_state(type(each)))
    return any(wanted(edge.value) for edge in walk)


def _is_open(value: Any, kind: Kind) -> bool:
    return kind is Kind.CONTAINER or is_namespace(value) or user_objects.is_plain(type(value))


def is_trainable(value: Any) -> bool:
    """True for a tensor that an optimizer can change."""
    return is_tensor(value) and value.requires_grad and value.is_leaf


def label_of(value: Any) -> str:
    """Name of a type. Not of its module where that is the script, which may run under another name next time."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return f"{package}.{kind.__qualname__}" if package in ("torch", "numpy") else kind.__qualname__


def is_module(value: Any) -> bool:
    torch = loaded("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def is_optimizer(value: Any) -> bool:
    torch = loaded("torch")
    return torch is not None and isinstance(value, torch.optim.Optimizer)
