# SPDX-License-Identifier: MIT
"""Procedures of the Fortran program as functions of tensors, with gradients through their adjoints."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..errors import FtnPytorchError
from ..system import thread_recorder

_CHECKED_CALLS = 2


def procedure(name: str) -> Callable:
    """A function that calls the procedure which the program has registered under ``name``.

    It takes tensors in host memory and returns a tensor, or a tuple of several. Axes are in reverse of their order in
    Fortran. Where an input requires gradients, torch calls the adjoint of the procedure for them. The procedure runs on
    the thread that calls; the first calls check that it left its inputs alone.
    """
    function = _function(name)

    def call(*inputs: Any) -> Any:
        return function.apply(*inputs)

    call.__name__ = name
    return call


@functools.cache
def _function(name: str) -> Any:
    import torch

    class Procedure(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            outputs = forward(*inputs)
            ctx.save_for_backward(*inputs)
            return outputs[0] if len(outputs) == 1 else outputs

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *gradients: Any) -> Any:
            return adjoint(*ctx.saved_tensors, *gradients)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            raise FtnPytorchError("HOOK", f"procedure {name!r} has an adjoint at most, and no tangent")

    forward = _Caller(torch, name, adjoint=False)
    adjoint = _Caller(torch, name, adjoint=True)
    Procedure.__name__ = name
    return Procedure


class _Caller:
    """Calls a procedure, or its adjoint, and checks its first calls."""

    def __init__(self, torch: Any, name: str, adjoint: bool) -> None:
        self._torch = torch
        self._name = name
        self._adjoint = adjoint
        self._calls = 0

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        import _ftn_pytorch

        thread_recorder.refuse(
            f"it calls {self._label()} of the program, which nothing would call any more; call it outside of the "
            "recorded function and pass what it returns"
        )
        self._require_tensors(tensors)
        tensors = tuple(tensor.contiguous() for tensor in tensors)  # gradients may have strides of zero
        outputs = _ftn_pytorch.outputs_of_procedure(self._name)
        count = len(tensors) - outputs if self._adjoint else outputs
        self._calls += 1
        kept = [tensor.clone() for tensor in tensors] if self._calls <= _CHECKED_CALLS else []
        made = _ftn_pytorch.call_procedure(self._name, self._adjoint, tensors, count)
        for number, (before, tensor) in enumerate(zip(kept, tensors), 1):
            if not self._torch.equal(before.nan_to_num(), tensor.nan_to_num()):
                raise FtnPytorchError("INPUT_MODIFIED", f"{self._label()} has changed its input {number}")
        for number, (result, tensor) in enumerate(zip(made, tensors if self._adjoint else ()), 1):
            if result.shape != tensor.shape:
                raise FtnPytorchError(
                    "SHAPE",
                    f"{self._label()} made gradient {number} of shape {tuple(result.shape)[::-1]} for an input of "
                    f"shape {tuple(tensor.shape)[::-1]}, in Fortran order",
                )
        return made

    def _require_tensors(self, tensors: tuple[Any, ...]) -> None:
        for number, tensor in enumerate(tensors, 1):
            if not isinstance(tensor, self._torch.Tensor):
                raise TypeError(
                    f"argument {number} of {self._label()} is of type {type(tensor).__name__}, not a tensor"
                )
            if tensor.device.type != "cpu":
                raise FtnPytorchError(
                    "DEVICE", f"argument {number} of {self._label()} is on {tensor.device}: pass x.cpu()"
                )

    def _label(self) -> str:
        return f"the adjoint of procedure {self._name!r}" if self._adjoint else f"procedure {self._name!r}"
