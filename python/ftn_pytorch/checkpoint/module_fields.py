# SPDX-License-Identifier: MIT
"""Fields of networks and optimizers that their ``state_dict`` does not hold."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from ..values import loaded
from .stateful import is_module


def layers_of(value: Any) -> Iterator[tuple[str, Any]]:
    """A network and the layers in it by name, without those of TorchScript; an optimizer alone."""
    if not is_module(value):
        yield "", value
        return
    compiled = loaded("torch").jit.ScriptModule
    for name, layer in value.named_modules():
        if not isinstance(layer, compiled):
            yield name, layer


def is_field(layer: Any, name: str) -> bool:
    """True for the name of a field that is the user's, or a number of a layer such as ``Dropout.p``."""
    known = _of_modules() if is_module(layer) else frozenset(("defaults", "state", "param_groups"))
    # A field must not hide a method.
    return name not in known and not name.startswith("__") and not callable(getattr(type(layer), name, None))


@functools.cache
def _of_modules() -> frozenset[str]:
    return frozenset(vars(loaded("torch").nn.Module())) | {"training"}
