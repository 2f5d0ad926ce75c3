# SPDX-License-Identifier: MIT
"""Optimizers of torch.optim for Fortran."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import FtnPytorchError, did_you_mean, summary
from ...script import parameters
from ...script.framework import import_torch
from ...system import private_names
from ..base import Runner
from . import fused_kernels
from .base import ObjectRunner, check_type, class_of, make, plain_options

# From here on plain gradient descent takes the fused kernel.
_ELEMENTS_TO_FUSE = 65536


def for_model(runner: Runner, kind: str, /, **options: Any) -> OptimizerRunner:
    """An optimizer of the parameters of a model that require gradients, which is part of the checkpoints of that."""
    made = OptimizerRunner(kind, *parameters.trainable(runner), **options)
    made.model = runner
    runner.attach("torch_optimizer", made)
    return made


class OptimizerRunner(ObjectRunner):
    """``held`` is an object of a class of torch.optim, by its name, for some tensors.

    With the fused kernel of torch if there is one, unless an option chooses another form.
    """

    offered = (
        "step", "step_with", "zero_grad", "add_group", "get", "set", "clip_norm", "clip_value",
        "scheduler", "scaler", "take_state", "take_rates",
    )  # fmt: skip

    def __init__(self, kind: str, /, *tensors: Any, **options: Any) -> None:
        torch = import_torch("torch_optimizer")
        found = class_of((torch.optim,), kind, torch.optim.Optimizer, "optimizer")
        super().__init__(kind, _make(found, _checked(torch, tensors), plain_options(options)))
        self._torch = torch
        self.model: Runner | None = None
        closure = inspect.signature(self.held.step).parameters.get("closure")
        self.needs_closure = closure is not None and closure.default is inspect.Parameter.empty

    def attach_to_model(self, kind: str, made: ObjectRunner) -> None:
        """What is made for an optimizer is kept where that is kept."""
        (self.model or self).attach(kind, made)

    def step(self) -> None:
        """ARGUMENT where nothing has a gradient, SIGNATURE where the optimizer computes the loss itself."""
        self.require_gradients()
        with fused_kernels.prepared(self.held):
            self.held.step()

    def require_gradients(self) -> None:
        if self.needs_closure:
            raise FtnPytorchError(
                "SIGNATURE", f"{self.name} computes the loss several times in a step: call step with a closure"
            )
        if all(each.grad is None for group in self.held.param_groups for each in group["params"]):
            raise FtnPytorchError(
                "ARGUMENT",
                f"none of the {len(self._tensors())} parameters of {self.name} has a gradient: call backward of the "
                "loss before step, and zero_grad after it",
            )

    def step_with(self, address: int, context: int) -> float:
        """A step with a closure of the program that makes the loss. Returns the first loss.

        Gradients are cleared before each call of it and computed after it.
        """
        import _ftn_pytorch

        first: list[float] = []

        def closure() -> Any:
            self.held.zero_grad()
            (loss,) = _ftn_pytorch.call_closure(address, context)
            if not loss.requires_grad:
                raise FtnPytorchError(
                    "ARGUMENT",
                    "the loss of the closure was not computed from anything that requires gradients: compute it from "
                    "the parameters, with tensors",
                )
            loss.backward()
            if not first:
                first.append(loss.item())
            return loss

        if self.needs_closure:
            self.held.step(closure)
        else:
            with self._torch.enable_grad():
                closure()
            self.step()
        return first[0]

    def add_group(self, /, *tensors: Any, **options: Any) -> None:
        """Train these tensors too, with settings that differ from those of the others."""
        settings = plain_options(options)
        for name in settings:
            self._require_setting(name, settings[name], self.held.defaults)
        added = _checked(self._torch, tensors)
        _refuse_fused_sections(self.name, added, settings)
        if self.held.defaults.get("fused") and not fused_kernels.can_step(added):
            settings["fused"] = False
        try:
            self.held.add_param_group({"params": added, **settings})
        except (TypeError, ValueError, RuntimeError) as failure:
            raise FtnPytorchError("ARGUMENT", f"{self.name} refuses the group: {summary(failure)}") from failure

    def get(self, name: str, group: int) -> Any:
        """A setting of a group, which counts from 1."""
        settings = self._groups(group or 1)[0]
        self._require_setting(name, None, settings)
        value = settings[name]
        return self._torch.tensor(value, dtype=self._torch.float64, device="cpu") if isinstance(value, tuple) else value

    def set(self, group: int, /, **options: Any) -> None:
        """Change settings of a group, or of all for 0."""
        settings = plain_options(options)
        for chosen in self._groups(group):
            for name, value in settings.items():
                self._require_setting(name, value, chosen)
            _refuse_fused_sections(self.name, chosen["params"], settings)
        for chosen in self._groups(group):
            for name, value in settings.items():
                before = chosen[name]
                if isinstance(before, self._torch.Tensor):
                    before.fill_(value)
                else:
                    chosen[name] = bool(value) if isinstance(before, bool) else value

    def clip_norm(self, limit: float, kind: float) -> float:
        """Scale all gradients so that their norm is at most ``limit``; the norm that they had."""
        total = self._torch.nn.utils.clip_grad_norm_(self._tensors(), limit, norm_type=kind)
        return float(total)

    def clip_value(self, limit: float) -> None:
        """Limit each element of the gradients."""
        self._torch.nn.utils.clip_grad_value_(self._tensors(), limit)

    def scheduler(self, kind: str, /, *others: Any, **options: Any) -> ObjectRunner:
        """A scheduler for this optimizer; ``others`` are the numbers of schedulers that it works with."""
        from .schedulers import SchedulerRunner

        made = SchedulerRunner(kind, self, others, options)
        self.attach_to_model("torch_scheduler", made)
        return made

    def scaler(self, **options: Any) -> ObjectRunner:
        """A gradient scaler for this optimizer."""
        from .scalers import ScalerRunner

        made = ScalerRunner(self, self._tensors()[0].device.type, options)
        self.attach_to_model("torch_grad_scaler", made)
        return made

    def take_state(self, place: int, steps: float, *kept: Any) -> None:
        """Go on from what an optimizer of the core has kept of a parameter after so many steps."""
        parameter = self._tensors()[place]
        if isinstance(self.held, self._torch.optim.SGD):
            state = dict(zip(("momentum_buffer",), kept))
        else:
            state = dict(zip(("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), kept))
            state["step"] = self._torch.tensor(steps, dtype=self._torch.float32, device=parameter.device)
        self.held.state[parameter] = state

    def take_rates(self, first: float, is_stepped: bool) -> None:
        """Go on from what an optimizer of the core has kept for its schedulers, before these are made again.

        That is the learning rate before the first of them, and whether there has been a step since.
        """
        for group in self.held.param_groups:
            group["initial_lr"] = first
        private_names.set_stepped(self.held, bool(is_stepped))

    def _tensors(self) -> list[Any]:
        return [each for group in self.held.param_groups for each in group["params"]]

    def _groups(self, number: int) -> list[dict[str, Any]]:
        groups = self.held.param_groups
        if not 0 <= number <= len(groups):
            raise FtnPytorchError("ARGUMENT", f"{self.name} has no group {number}: they count from 1 to {len(groups)}")
        return groups if number == 0 else [groups[number - 1]]

    def _require_setting(self, name: str, value: Any, known: Mapping[str, Any]) -> None:
        names = [each for each in known if each != "params"]
        if name not in names:
            raise FtnPytorchError("SIGNATURE", f"{self.name} has no setting {name!r}{did_you_mean(name, names)}")
        if value is not None:
            check_type(self.name, name, value, known[name])


def _checked(torch: Any, tensors: Sequence[Any]) -> list[Any]:
    """Tensors that can be trained; ARGUMENT for others, and for none."""
    if not tensors:
        raise FtnPytorchError("ARGUMENT", "there are no parameters to train")
    tensors = [getattr(each, "_ftn_pytorch_leaf", each) for each in tensors]  # of the axis order that it was made in
    for number, each in enumerate(tensors, 1):
        if not isinstance(each, torch.Tensor):
            raise FtnPytorchError("ARGUMENT", f"argument {number} is no tensor; options need a name: torch_in(name, x)")
        if not each.requires_grad:
            raise FtnPytorchError("ARGUMENT", f"parameter {number} requires no gradients: call set_requires_grad first")
        if not each.is_leaf:
            raise FtnPytorchError("ARGUMENT", f"parameter {number} is the result of an operation, which is not trained")
    return tensors


def _refuse_fused_sections(name: str, tensors: Sequence[Any], settings: Mapping[str, Any]) -> None:
    for number, each in enumerate(tensors, 1):
        if settings.get("fused") and not fused_kernels.is_dense(each):
            raise FtnPytorchError(
                "ARGUMENT",
                f"{name} is asked for the fused kernel, which can't train parameter {number}: its elements don't lie "
                "side by side (a section of an array?); leave out the option fused",
            )


def _make(kind: Any, tensors: list[Any], settings: dict[str, Any]) -> Any:
    _refuse_fused_sections(kind.__name__, tensors, settings)
    if "fused" in inspect.signature(kind).parameters and _gains_by_fusing(kind, tensors, settings):
        try:
            return make(kind, (tensors,), {**settings, "fused": True})
        except FtnPytorchError as failure:
            if not isinstance(failure.__cause__, RuntimeError):
                raise
    return make(kind, (tensors,), settings)


def _gains_by_fusing(kind: Any, tensors: list[Any], settings: dict[str, Any]) -> bool:
    """Whether the fused kernel is possible and pays.

    Measured on idle cores it does, whatever the size and the number of threads, but for plain gradient descent on few
    numbers: a loop over the tensors takes 0.6 of the time there, and wakes no threads.
    """
    if {"fused", "foreach", "differentiable"} & set(settings) or not fused_kernels.can_step(tensors):
        return False
    is_plain = kind.__name__ == "SGD" and not settings.get("momentum") and all(x.device.type == "cpu" for x in tensors)
    return not is_plain or sum(x.numel() for x in tensors) >= _ELEMENTS_TO_FUSE
