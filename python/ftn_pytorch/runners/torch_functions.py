# SPDX-License-Identifier: MIT
"""The functions of torch as a runner: what ``torch_call`` and the named functions of Fortran call."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from ..errors import FtnPytorchError, did_you_mean
from ..script.conventions import PREFIX, Convention
from ..script.framework import TORCH, import_torch
from ..tensors.engine import torch_dtype
from ..tensors.procedures import procedure
from .base import Runner
from .options import Options

_PLAIN = "plain."
_PROCEDURE = "ftn_pytorch."
# Makers of objects by their modules, which few programs need.
_MAKERS = {
    "ftn_pytorch_optimizer": (".objects.optimizers", "OptimizerRunner"),
    "ftn_pytorch_loss": (".objects.losses", "LossRunner"),
}


class TorchFunctions(Runner):
    """Functions by their names below ``torch``, methods of tensors as "Tensor.add_" or, where torch has no function of
    that name, by their names alone.

    "plain.exp" is torch.exp itself, without what follows: for callers that know what it takes. A leading "torch." is
    passed over. "ftn_pytorch.advection" is a procedure of the program.

    A text passed as ``dtype`` is the name of one. An integer array of rank 1 becomes a tuple where
    a function refuses a tensor, so shapes and axes can be passed.
    """

    framework = TORCH
    device = None

    def __init__(self, layout: str) -> None:
        super().__init__("torch", Options(layout=layout))
        self.backend = self.name
        self._torch = import_torch("torch_call")

    def find(self, name: str) -> Callable | None:
        if name in _MAKERS:
            module, maker = _MAKERS[name]
            return getattr(importlib.import_module(module, __package__), maker)
        if name.startswith(_PROCEDURE):
            return procedure(name.removeprefix(_PROCEDURE))
        name = name.removeprefix(_PLAIN).removeprefix("torch.")
        found = self._below_torch(name)
        if found is None and "." not in name:
            found = getattr(self._torch.Tensor, name, None)
        return found if callable(found) else None

    def _below_torch(self, name: str) -> Any:
        found: Any = self._torch
        *folders, last = name.split(".")
        for folder in folders:
            inside = getattr(found, folder, None)
            if inside is None and inspect.ismodule(found):
                try:
                    inside = importlib.import_module(f"{found.__name__}.{folder}")
                except ImportError:
                    return None
            found = inside
        return getattr(found, last, None)

    def functions(self) -> list[str]:
        return []

    def require(self, name: str) -> Callable:
        function = self.find(name)
        if function is not None:
            return function
        folder, _, last = name.removeprefix("torch.").rpartition(".")
        place = self._below_torch(folder) if folder else self._torch
        places = [] if place is None else [place] if folder else [place, self._torch.Tensor]
        near = {
            other
            for one in places
            for other in dir(one)
            if not other.startswith("_") and callable(getattr(one, other, None)) and other != last
        }
        hint = did_you_mean(last, near)
        raise FtnPytorchError("HOOK", f"torch has no function {name}, and its tensors no method of that name{hint}")

    def signature(self, name: str) -> inspect.Signature | None:
        """None: torch checks arguments itself, and says more."""
        return None

    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        function = self.require(name)
        if name not in _MAKERS and not name.startswith(_PLAIN):
            function = functools.partial(_call, self._torch, function)
        return function, Convention(one_list=False, has_out=False)

    def reload(self) -> None:
        raise FtnPytorchError("HOOK", "torch is not reloaded")

    def _kept(self, wanted: str) -> Any:
        raise FtnPytorchError("HOOK", f"torch has no state to {wanted.removeprefix(PREFIX)}")


def _call(torch: Any, function: Callable, *args: Any, **named: Any) -> Any:
    if isinstance(named.get("dtype"), str):
        named["dtype"] = torch_dtype(named["dtype"])
    try:
        return function(*args, **named)
    except TypeError:
        tuples = [_as_tuple(torch, value) for value in args]
        named_tuples = {name: _as_tuple(torch, value) for name, value in named.items()}
        if not any(isinstance(value, tuple) for value in (*tuples, *named_tuples.values())):
            raise
    return function(*tuples, **named_tuples)


def _as_tuple(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() == 1 and value.dtype in (torch.int32, torch.int64):
        return tuple(value.tolist())
    return value
