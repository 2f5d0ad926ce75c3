# SPDX-License-Identifier: MIT
"""Schedulers of torch.optim.lr_scheduler for Fortran."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import FtnPytorchError
from ...script.framework import import_torch
from ...system import private_names
from .base import ObjectRunner, class_of, make, numbered, plain_options


class SchedulerRunner(ObjectRunner):
    """``held`` is an object of a class of torch.optim.lr_scheduler, or of torch.optim.swa_utils."""

    offered = ("step", "step_by", "last_lr", "take_state")

    def __init__(self, kind: str, optimizer: Any, others: Sequence[Any], options: Mapping[str, Any]) -> None:
        torch = import_torch("torch_scheduler")
        schedulers = torch.optim.lr_scheduler
        found = class_of((schedulers, torch.optim.swa_utils), kind, schedulers.LRScheduler, "scheduler")
        settings = plain_options(options)
        known = inspect.signature(found).parameters
        if others:
            settings["schedulers"] = [each.held for each in numbered(others)]
        for name in settings:
            if name in known and "scale_fn" in name:
                raise FtnPytorchError("ARGUMENT", f"{name} of {kind} is a Python function: make it in a script")
        args = (optimizer.held,) if next(iter(known)) == "optimizer" else ()
        if not args and "optimizer" in known:
            settings["optimizer"] = optimizer.held
        super().__init__(kind, make(found, args, settings))
        self._needs_metric = "metrics" in inspect.signature(self.held.step).parameters

    def step(self) -> None:
        """SIGNATURE where a metric decides."""
        if self._needs_metric:
            raise FtnPytorchError("SIGNATURE", f"{self.name} decides by a metric, such as the loss: call step(metric)")
        self.held.step()

    def step_by(self, metric: float) -> None:
        """A step that is decided by a metric."""
        if not self._needs_metric:
            raise FtnPytorchError("SIGNATURE", f"{self.name} takes no metric: call step()")
        self.held.step(metric)

    def last_lr(self, group: int) -> float:
        """Learning rate of a group, which counts from 1."""
        rates = self.held.get_last_lr()
        if not 1 <= group <= len(rates):
            raise FtnPytorchError("ARGUMENT", f"there is no group {group}: they count from 1 to {len(rates)}")
        return float(rates[group - 1])

    def take_state(self, steps: int, rate: float) -> None:
        """Go on from what a scheduler of the core has kept after so many steps, with that of its creation."""
        private_names.set_progress(self.held, steps, [rate])
