# SPDX-License-Identifier: MIT
"""Losses of torch.nn for Fortran."""

from __future__ import annotations

from typing import Any

from ...script import parameters
from ...script.framework import import_torch
from .base import ObjectRunner, class_of, classes, make

_SIZES = "cutoffs"


def create(kind: str, /, **options: Any) -> LossRunner:
    """A loss by the name of its class, with its options; arrays are copied."""
    return LossRunner(kind, options)


def names() -> list[str]:
    """All losses of this torch."""
    torch = import_torch("torch_loss")
    return [name for name in classes((torch.nn,), torch.nn.Module) if "Loss" in name]


class LossRunner(ObjectRunner):
    """``held`` is an object of a loss class of torch.nn."""

    offered = ("forward", parameters.PARAMETERS)

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        torch = import_torch("torch_loss")
        place = type("losses", (), {name: getattr(torch.nn, name) for name in names()})
        found = class_of((place,), kind, torch.nn.Module, "loss")
        own = {
            name: _owned(value, name == _SIZES) if isinstance(value, torch.Tensor) else value
            for name, value in options.items()
        }
        super().__init__(kind, make(found, (), own))

    def networks(self) -> dict[str, Any]:
        return {"": self.held} if any(True for _ in self.held.parameters()) else {}

    def find(self, name: str) -> Any:
        return parameters.own_function(self, name) if parameters.is_own(name) else super().find(name)

    def forward(self, *args: Any) -> Any:
        """The loss of an input and a target, or of what else the class takes."""
        result = self.held(*args)
        return result.loss if hasattr(result, "loss") else result


def _owned(value: Any, as_numbers: bool) -> Any:
    return value.tolist() if as_numbers else value.clone()
