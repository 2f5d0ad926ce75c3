# SPDX-License-Identifier: MIT
"""Gradient scalers of torch for Fortran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...script.framework import import_torch
from . import fused_kernels
from .base import ObjectRunner, make, plain_options


class ScalerRunner(ObjectRunner):
    """``held`` is a torch.amp.GradScaler, for one optimizer."""

    offered = ("scale", "unscale", "step", "update", "get_scale")

    def __init__(self, optimizer: Any, device: str, options: Mapping[str, Any]) -> None:
        torch = import_torch("torch_grad_scaler")
        super().__init__("GradScaler", make(torch.amp.GradScaler, (device,), plain_options(options)))
        self._optimizer = optimizer

    def unscale(self) -> None:
        """Divide the gradients by the scale, so that they can be looked at or clipped before step."""
        self.held.unscale_(self._optimizer.held)

    def step(self) -> None:
        """A step of the optimizer, left out where a gradient is not finite."""
        self._optimizer.require_gradients()
        with fused_kernels.prepared(self._optimizer.held):
            self.held.step(self._optimizer.held)
