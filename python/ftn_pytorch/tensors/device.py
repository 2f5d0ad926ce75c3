# SPDX-License-Identifier: MIT
"""Computing on a device: arrays of the host are moved there and back, those that are there are used as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..errors import FtnPytorchError
from ..script import parameters
from ..script.framework import NUMPY
from ..system import host_values, private_names, process, shared_gpu


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
    if device.type == "cuda":
        shared_gpu.warn_if_slow()
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
    """``function`` with tensors moved to ``device``; what it changed in place is copied back into the arrays.

    Tensors inside lists are moved too, those on the device already are passed as they are. Results stay where the
    function left them. An array is written only if the function changed its copy, as told by torch's version counter.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        moves = _Moves(device)
        result = function(*map(moves.move, args), **{name: moves.move(value) for name, value in kwargs.items()})
        moves.copy_back()
        return result

    call.hands_on = True  # type: ignore[attr-defined]  # what it returns is what the function returns
    return functools.wraps(function, updated=())(call)


_serving: list[bool] = []


def serve_ranks() -> None:
    """This process computes for the ranks of a GPU, so scripts that are loaded from now on have ``into_arrays``."""
    _serving[:] = [True]
    host_values.is_elsewhere('with load(..., per="gpu") the script runs in another process than the program')


def serves_ranks() -> bool:
    return bool(_serving)


def into_arrays(function: Callable, device: str) -> Callable:
    """As ``on_device``, for arrays with locked pages: copies there, computing and copies back are one queue of work.

    ``out``: one array of the host, or a list of them. Where results are tensors of their shapes and types they are
    copied there, and nothing is returned. The work is done when the call returns.
    """
    import torch

    place = torch.device(device)

    @functools.wraps(function, updated=())
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        moves = _Moves(place, waits=False)
        result = function(*map(moves.move, args), **{name: moves.move(value) for name, value in kwargs.items()})
        moves.copy_back()
        arrays, results = (out, result) if isinstance(out, list) else ([out], [result])
        fits = isinstance(results, (list, tuple)) and len(results) == len(arrays)
        if fits and all(map(is_like, results, arrays)):
            for array, made in zip(arrays, results):
                array.copy_(made.detach(), non_blocking=True)
            result = None
        torch.cuda.current_stream(place).synchronize()
        return result

    def is_like(result: Any, array: Any) -> bool:
        if not (isinstance(result, torch.Tensor) and isinstance(array, torch.Tensor)):
            return False
        return result.device == place and result.shape == array.shape and result.dtype == array.dtype

    return call


class _Moves:
    """The tensors of one call: as they came, on the device, and the version of the latter before the call.

    ``waits``: copies there have ended when ``move`` returns.
    """

    def __init__(self, device: Any, waits: bool = True) -> None:
        import torch

        self._waits = waits
        self._tensor = torch.Tensor
        self._device = torch.device(device)
        if self._device.type == "cuda" and self._device.index is None:
            self._device = torch.device("cuda", torch.cuda.current_device())
        self._moved: list[tuple[Any, Any, int]] = []

    def move(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.move(item) for item in value]
        if not isinstance(value, self._tensor):
            return value
        if self._is_there(value.device):
            return value
        if value.device.type != "cpu":
            process.warn_once(
                f"an array on {value.device} is copied to {self._device} in every call, because the model is there: "
                f'load with device="{value.device}"'
            )
        there = value.to(self._device, copy=True, non_blocking=not self._waits)
        self._moved.append((value, there, private_names.version_of(there)))
        return there

    def _is_there(self, device: Any) -> bool:
        return device == self._device

    def copy_back(self) -> None:
        for here, there, version in self._moved:
            if private_names.version_of(there) != version:
                move_back(there, here)


def move(tensor: Any, device: str, dtype: str) -> Any:
    """A copy of a tensor on ``device`` and of ``dtype``; where one is empty, that of the tensor."""
    import torch

    wanted = getattr(torch, dtype) if dtype else tensor.dtype
    return tensor.to(device or tensor.device, wanted, copy=True)


def move_back(copy: Any, tensor: Any) -> None:
    """Write the values of a copy into the array that it was made of."""
    tensor.copy_(copy.detach())


def start_device(name: str) -> None:
    """Make a device ready for memory that torch did not make; DEVICE if it cannot be used."""
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as failure:
        raise FtnPytorchError(
            "DEVICE", f"the array is in memory of {name}, which torch cannot use: {failure}\n{describe_torch(torch)}"
        ) from failure
    shared_gpu.warn_if_slow()


def wait_for_device(name: str) -> None:
    """Until what torch was asked to do on its current stream of a device, empty for the current one, is done."""
    import torch

    torch.cuda.current_stream(name or None).synchronize()


def enter_stream(address: int, device: str) -> Any:
    """Let torch work on a stream of the program, of a GPU or of the current one; the argument of ``leave_stream``."""
    import torch

    there = device or None
    stream = torch.cuda.ExternalStream(address, there) if address else torch.cuda.default_stream(there)
    entered = torch.cuda.stream(stream)  # which knows that another GPU may be current, with a stream of its own
    entered.__enter__()
    return entered


def leave_stream(entered: Any) -> None:
    """Let torch work on the GPU and the streams that were current before."""
    entered.__exit__(None, None, None)


def move_modules(namespace: dict[str, Any], device: str) -> None:
    """Move every network of a script to the device, see ``parameters.networks_in``.

    Parameters stay the same objects, so optimizers that the script made keep working. Plain tensors are left alone: the
    script registers them as buffers of a module or makes them on the device.
    """
    import torch

    for value in parameters.networks_in(namespace).values():
        if isinstance(value, torch.nn.Module):
            value.to(device)
