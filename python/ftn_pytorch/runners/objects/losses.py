# SPDX-License-Identifier: MIT
"""Losses of torch.nn for Fortran."""

from __future__ import annotations

from typing import Any

from ...script import parameters
from ...script.framework import import_torch
from .base import ObjectRunner, class_of, classes, make


def names() -> list[str]:
    """All losses of this torch."""
    torch = import_torch("torch_loss")
    return [name for name in classes((torch.nn,), torch.nn.Module) if "Loss" in name]


class LossRunner(ObjectRunner):
    """``held`` is an object of a loss class of torch.nn, by its name, with its options; arrays are copied."""

    offered = ("forward", parameters.PARAMETERS)

    def __init__(self, kind: str, /, **options: Any) -> None:
        torch = import_torch("torch_loss")
        place = type("losses", (), {name: getattr(torch.nn, name) for name in names()})
        found = class_of((place,), kind, torch.nn.Module, "loss")
        own = {name: each.clone() if isinstance(each, torch.Tensor) else each for name, each in options.items()}
        if isinstance(sizes := own.get("cutoffs"), torch.Tensor):
            own["cutoffs"] = sizes.tolist()
        super().__init__(kind, make(found, (), own))

    def networks(self) -> dict[str, Any]:
        return {"": self.held} if any(True for _ in self.held.parameters()) else {}

    def find(self, name: str) -> Any:
        return parameters.own_function(self, name) if parameters.is_own(name) else super().find(name)

    def forward(self, *args: Any) -> Any:
        """The loss of an input and a target, or of what else the class takes."""
        result = self.held(*args)
        return result.loss if hasattr(result, "loss") else result
