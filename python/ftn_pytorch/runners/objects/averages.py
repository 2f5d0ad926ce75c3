# SPDX-License-Identifier: MIT
"""Averages of the weights of a model over a training, for Fortran."""

from __future__ import annotations

from typing import Any

from ...errors import FtnPytorchError
from ...script import parameters
from ...script.framework import import_torch
from ..base import Runner
from .base import ObjectRunner, make


def for_model(runner: Runner, /, **options: Any) -> AveragedRunner:
    """The average of a model's parameters, which is part of the checkpoints of that."""
    made: AveragedRunner = make(AveragedRunner, (runner,), options, label="torch_averaged")
    runner.attach("torch_averaged", made)
    return made


class AveragedRunner(ObjectRunner):
    """``held`` is a torch.optim.swa_utils.AveragedModel of a list of the model's tensors.

    ``decay``: the average forgets exponentially; 0 is the mean of all updates. ``use_buffers``: buffers are averaged
    too, otherwise they are copied.
    """

    offered = ("update", "swap", "updates")

    def __init__(self, runner: Runner, decay: float = 0.0, use_buffers: bool = False) -> None:
        torch = import_torch("torch_averaged")
        if not 0 <= decay < 1:
            raise FtnPytorchError("ARGUMENT", f"decay is {decay}, it must be at least 0 and less than 1")
        tools = torch.optim.swa_utils
        self._ours = torch.nn.ParameterList(parameters.named(runner).values())
        for number, buffer in enumerate(parameters.buffers(runner)):
            self._ours.register_buffer(f"buffer{number}", buffer)
        forgetting = {"multi_avg_fn": tools.get_ema_multi_avg_fn(decay)} if decay else {}
        super().__init__("AveragedModel", tools.AveragedModel(self._ours, use_buffers=use_buffers, **forgetting))
        self._torch = torch
        self._is_swapped = False

    def state(self) -> Any:
        self._require_apart()
        return super().state()

    def update(self) -> None:
        """Take the weights that the model has now into the average."""
        self._require_apart()
        self.held.update_parameters(self._ours)

    def swap(self) -> None:
        """Exchange the weights of the model with their average; a second call exchanges them back."""
        with self._torch.no_grad():
            for one, other in zip(_tensors(self._ours), _tensors(self.held.module)):
                before = one.clone()
                one.copy_(other)
                other.copy_(before)
        self._is_swapped = not self._is_swapped

    def updates(self) -> int:
        """How many updates there were."""
        return int(self.held.n_averaged)

    def _require_apart(self) -> None:
        if self._is_swapped:
            raise FtnPytorchError("ARGUMENT", "the model has the averaged weights now: call swap first")


def _tensors(module: Any) -> list[Any]:
    return [*module.parameters(), *module.buffers()]
