# SPDX-License-Identifier: MIT
"""Computing on a device: host arrays in, computation there, host results (brought back by ``results.to_host``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import private_names
from .errors import FtnPytorchError
from .framework import NUMPY


def resolve(text: str | None, framework: str) -> str | None:
    """Device to compute on, None for the host; DEVICE if it is unknown or cannot be used."""
    if text is None:
        return None
    if framework == NUMPY:
        if text == "cpu":
            return None
        raise FtnPytorchError("DEVICE", f"device={text!r} needs torch, and the script uses NumPy")
    import torch

    try:
        device = torch.device(text)
    except RuntimeError as failure:
        raise FtnPytorchError(
            "DEVICE", f'device={text!r} is no device that torch knows; use "cpu", "cuda" or "cuda:1" ({failure})'
        ) from failure
    if device.type == "cpu":
        return None
    if device.type == "meta":
        raise FtnPytorchError("DEVICE", "device='meta' holds no numbers, nothing can be computed there")
    try:
        torch.empty(1, device=device).fill_(0)
    except (RuntimeError, AssertionError, NotImplementedError) as failure:
        raise FtnPytorchError(
            "DEVICE", f"device={text!r} cannot be used: {failure}\n{describe_torch(torch)}"
        ) from failure
    return str(device)


def describe_torch(torch: Any) -> str:
    """What torch was built for and what it finds, in one sentence."""
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "the CPU only"
    if torch.version.hip:
        built = f"ROCm {torch.version.hip}"
    count = torch.cuda.device_count() if torch.version.cuda or torch.version.hip else 0
    found = f"{count} usable GPU{'' if count == 1 else 's'}"
    return f"torch {torch.__version__} was built for {built} and finds {found}."


def on_device(function: Callable, device: str) -> Callable:
    """``function`` with tensors moved to ``device``; what it changed in place is copied back into the host arrays.

    Tensors inside lists are moved too. Results stay where the function left them. A host array is written only if the
    function changed its copy, as told by torch's version counter.
    """

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        moves = _Moves(device)
        result = function(*map(moves.move, args), **{name: moves.move(value) for name, value in kwargs.items()})
        moves.copy_back()
        return result

    return call


class _Moves:
    """The tensors of one call: on the host, on the device, and the version of the latter before the call."""

    def __init__(self, device: str) -> None:
        import torch

        self._tensor = torch.Tensor
        self._device = device
        self._moved: list[tuple[Any, Any, int]] = []

    def move(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.move(item) for item in value]
        if not isinstance(value, self._tensor):
            return value
        there = value.to(self._device, copy=True)
        self._moved.append((value, there, private_names.version_of(there)))
        return there

    def copy_back(self) -> None:
        for here, there, version in self._moved:
            if private_names.version_of(there) != version:
                here.copy_(there.detach())


def move_modules(namespace: dict[str, Any], device: str) -> None:
    """Move every torch.nn.Module among the names of a script to the device.

    Parameters stay the same objects, so optimizers that the script made keep working. Plain tensors are left alone: the
    script registers them as buffers of a module or makes them on the device.
    """
    import torch

    for value in namespace.values():
        if isinstance(value, torch.nn.Module):
            value.to(device)
