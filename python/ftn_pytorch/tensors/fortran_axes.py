# SPDX-License-Identifier: MIT
"""Functions of torch that name axes or shapes, for callers that count axes as Fortran does.

A tensor of layout "reversed" has its axes in torch in reverse of their order in Fortran, one of layout "same" in the
same order. Axes and shapes of the arguments are those of Fortran; axes count from 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from ..errors import FtnPytorchError, did_you_mean, summary
from ..script.call_text import kind
from ..values.dtypes import OF_CODE
from .fortran_tensors import end_graph, overwrite, reversed_view


class FortranFunctions:
    """For tensors of one layout. Shapes and orders are integer tensors of rank 1, or tuples."""

    def __init__(self, layout: str) -> None:
        self._is_reversed = layout == "reversed"

    def find(self, name: str) -> Callable | None:
        """A function by its name, "reshape", or one that stands for several of torch, "reduce.sum"."""
        own, _, name_in_torch = name.partition(".")
        found = getattr(self, own, None)
        return functools.partial(found, name_in_torch) if found and name_in_torch else found

    def create(self, name: str, shape: Any, dtype: str, device: str, requires_grad: bool, *values: Any) -> Any:
        """torch.empty, zeros, ones, rand, randn (``name``) or full, with its value."""
        import torch

        return getattr(torch, name)(self._shape(shape), *values, **_kind(dtype, device), requires_grad=requires_grad)

    def spread(self, name: str, dtype: str, device: str, requires_grad: bool, *values: Any) -> Any:
        """torch.arange, linspace or eye (``name``), of numbers."""
        import torch

        return getattr(torch, name)(*values, **_kind(dtype, device), requires_grad=requires_grad)

    def like(self, name: str, tensor: Any, dtype: str, device: str, requires_grad: bool) -> Any:
        """torch.empty_like, zeros_like, ... (``name``)."""
        import torch

        return getattr(torch, name)(tensor, **_kind(dtype, device), requires_grad=requires_grad)

    def to(self, tensor: Any, dtype: str, device: str, non_blocking: bool) -> Any:
        """Of another type or on another device; the tensor itself if it is that already."""
        return tensor.to(**_kind(dtype, device), non_blocking=non_blocking)

    def reduce(self, name: str, tensor: Any, keepdim: bool, axis: int | None = None) -> Any:
        """torch.sum, mean, linalg.vector_norm, ... (``name``) along an axis, or over all of them.

        Of functions that also give places, the values. Not all of them know ``keepdim``.
        """
        import torch

        function = attrgetter(name)(torch)
        if axis is None:
            everything = {"dim": tuple(range(tensor.dim()))} if name == "logsumexp" else {}
            result = function(tensor, **everything)
            return result.reshape((1,) * tensor.dim()) if keepdim else result
        place = self._axis(axis, tensor.dim())
        result = _values(function(tensor, dim=place))
        return result.unsqueeze(place) if keepdim else result

    def place(self, name: str, tensor: Any, axis: int | None = None) -> Any:
        """torch.argmax, argmin: where along an axis, or among all elements in Fortran's order; from 1."""
        import torch

        function = getattr(torch, name)
        if axis is None:
            return function(self._reversed(tensor)) + 1
        return function(tensor, self._axis(axis, tensor.dim())) + 1

    def along(self, name: str, tensor: Any, axis: int) -> Any:
        """torch.softmax, cumsum, flip, sort, ... (``name``) along an axis. Of values and places, the values."""
        import torch

        place = self._axis(axis, tensor.dim())
        axes = {"dims": (place,)} if name == "flip" else {"dim": place}
        return _values(getattr(torch, name)(tensor, **axes))

    def loss(self, name: str, values: Any, target: Any, reduction: str) -> Any:
        """torch.nn.functional.mse_loss, ... (``name``); ``reduction`` "" is torch's default.

        Numbers of classes may be of any integer type; torch wants int64.
        """
        import torch

        function = getattr(torch.nn.functional, name)
        if name in ("cross_entropy", "nll_loss") and not (target.is_floating_point() or target.is_complex()):
            target = target.long()
        return function(values, target, reduction=reduction) if reduction else function(values, target)

    def join(self, name: str, axis: int, *tensors: Any) -> Any:
        """torch.cat, stack (``name``); stack makes the axis."""
        import torch

        if not tensors:
            raise FtnPytorchError("ARGUMENT", "there are no tensors to join")
        rank = tensors[0].dim() + (name == "stack")
        return getattr(torch, name)(tensors, self._axis(axis, rank))

    def reshape(self, tensor: Any, shape: Any) -> Any:
        """The elements in Fortran's order; one extent may be -1."""
        return self._reversed(self._reversed(tensor).reshape([int(extent) for extent in shape][::-1]))

    def permute(self, tensor: Any, order: Any) -> Any:
        """Axis i of the result is axis order(i) of the tensor."""
        axes = [self._axis(int(axis), tensor.dim()) for axis in order]
        return tensor.permute(axes[::-1] if self._is_reversed else axes)

    def slice(self, tensor: Any, axis: int, first: int, step: int, last: int | None = None) -> Any:
        """Elements first to last of an axis, both included, or to the end: a view."""
        place = self._axis(axis, tensor.dim())
        extent = tensor.shape[place]
        last = extent if last is None else last
        if not (first >= 1 and last <= extent and step >= 1):
            raise FtnPytorchError(
                "ARGUMENT", f"there is no section {first}:{last}:{step} of an axis with {extent} elements"
            )
        section = [slice(None)] * tensor.dim()
        section[place] = slice(first - 1, last, step)
        return tensor[tuple(section)]

    def overwrite(self, tensor: Any, value: Any) -> None:
        """Copy values of the same shape, or a number, into a tensor."""
        import torch

        if isinstance(value, torch.Tensor) and value.shape != tensor.shape:
            wrong = f"the tensor is {kind(tensor, self._is_reversed)}, the array {kind(value, self._is_reversed)}"
            raise FtnPytorchError("SHAPE", f"{wrong}; nothing is broadcast")
        with torch.no_grad():
            overwrite(tensor, value) if isinstance(value, torch.Tensor) else tensor.fill_(value)
        end_graph(tensor)

    def assign(self, tensor: Any, value: Any) -> None:
        """Copy a value into a tensor, which has the graph of the value and its ``requires_grad`` from then on."""
        import torch

        if tensor.grad_fn is not None:
            tensor.detach_()  # the graph of earlier values would grow with every assignment
        if tensor.requires_grad and not value.requires_grad:
            tensor.requires_grad_(False)
        with torch.set_grad_enabled(value.requires_grad):
            overwrite(tensor, value)

    def assign_result(self, name: str, tensor: Any, *args: Any) -> None:
        """The same for what torch.sum, ... (``name``) returns."""
        import torch

        self.assign(tensor, attrgetter(name)(torch)(*args))

    def assign_loss(self, name: str, tensor: Any, values: Any, target: Any, reduction: str) -> None:
        """The same for a loss."""
        self.assign(tensor, self.loss(name, values, target, reduction))

    def assign_grad(self, tensor: Any, source: Any) -> None:
        """The same for the gradient of another tensor; ARGUMENT if there is none."""
        if source.grad is None:
            raise FtnPytorchError(
                "ARGUMENT", "there is no gradient yet: call backward first, for a tensor with requires_grad"
            )
        self.assign(tensor, source.grad)

    def clear_grad(self, tensor: Any) -> None:
        """Overwrite the gradient with zeros, if there is one."""
        if tensor.grad is not None:
            tensor.grad.detach_().zero_()

    def requires_grad(self, tensor: Any) -> bool:
        """Whether gradients with respect to a tensor are computed."""
        return tensor.requires_grad

    def set_requires_grad(self, tensor: Any, wanted: bool) -> None:
        """Switch that on or off."""
        tensor.requires_grad_(wanted)

    def backward(self, tensor: Any, retain_graph: bool, gradient: Any = None) -> None:
        """Compute gradients; the graph goes unless it is to stay."""
        tensor.backward(gradient, retain_graph=retain_graph)

    def zero_grad(self, tensor: Any) -> None:
        """Forget the gradient."""
        tensor.grad = None

    def text(self, tensor: Any) -> str:
        """The tensor as Python prints it."""
        return str(tensor)

    def strides(self, tensor: Any) -> Any:
        """Distances of neighbours along each axis, in elements."""
        import torch

        return torch.tensor(self._shape(tensor.stride()), dtype=torch.int64, device="cpu")

    def _shape(self, shape: Sequence[Any]) -> list[int]:
        extents = [int(extent) for extent in shape]
        return extents[::-1] if self._is_reversed else extents

    def _reversed(self, tensor: Any) -> Any:
        """A view whose order of elements in torch is that of Fortran."""
        return tensor if self._is_reversed else reversed_view(tensor)

    def _axis(self, axis: int, rank: int) -> int:
        """An axis of torch, from 0, for one of Fortran, from 1."""
        if not 1 <= axis <= rank:
            raise FtnPytorchError("ARGUMENT", f"there is no axis {axis} in a tensor of rank {rank}: axes count from 1")
        return rank - axis if self._is_reversed else axis - 1


def _values(result: Any) -> Any:
    """The first of several results."""
    return result[0] if isinstance(result, tuple) else result


def _kind(dtype: str, device: str) -> dict[str, Any]:
    """Keyword arguments of torch for what is not empty."""
    import torch

    kind: dict[str, Any] = {"device": device} if device else {}
    if dtype:
        kind["dtype"] = torch_dtype(torch, dtype)
    return kind


def torch_dtype(torch: Any, name: str) -> Any:
    """An element type of torch by its name, "float32"; ARGUMENT if there is none."""
    found = getattr(torch, name.removeprefix("torch."), None)
    if isinstance(found, torch.dtype):
        return found
    raise FtnPytorchError("ARGUMENT", f"torch has no element type {name!r}{did_you_mean(name, OF_CODE.values())}")


def enter_autocast(device: str, dtype: str) -> Any:
    """torch.autocast on this thread until its ``__exit__``; ARGUMENT for what torch does not know.

    ``device``: type of device, empty for "cpu". ``dtype``: empty for that of torch for the device.
    """
    import torch

    wanted = torch_dtype(torch, dtype) if dtype else None
    try:
        context = torch.autocast(device or "cpu", dtype=wanted)
    except (RuntimeError, ValueError) as failure:
        raise FtnPytorchError("ARGUMENT", f"autocast is not possible: {summary(failure)}") from failure
    context.__enter__()
    return context
