# SPDX-License-Identifier: MIT
"""Tensors that Fortran holds: what the core asks for beside operators."""

from __future__ import annotations

from typing import Any

from ..errors import FtnPytorchError
from ..script.call_text import kind
from ..system import private_names
from ..values import is_tensor
from ..values.results import unpack


def adapt(tensor: Any, dtype: str | None, is_reversed: bool, copied: bool) -> Any:
    """A tensor for a function that wants another type or the other axis order, or memory of its own; with its graph."""
    import torch

    if is_reversed:
        source, tensor = tensor, reversed_view(tensor)
        if source.requires_grad and source.is_leaf:
            tensor._ftn_pytorch_leaf = source  # an optimizer trains this one: the view is the result of an operation
    if dtype:
        return tensor.to(getattr(torch, dtype), copy=copied)
    return tensor.clone() if copied else tensor


def tensor_at(address: int) -> Any:
    """The tensor that the core computes with: the same one, with its graph and gradient."""
    return _bridge().tensor_at(address)


def address_of(tensor: Any) -> int:
    """Where the core finds the tensor of libtorch that is behind this one, as long as this lives."""
    return _bridge().address_of(tensor)


def _bridge() -> Any:
    """The extension that knows how torch makes objects of tensors; IMPORT if it cannot be used."""
    from ..recording import extension

    module = extension.module()
    if module is None:
        raise FtnPytorchError("IMPORT", f"Python cannot see the tensors of libtorch: {extension.obstacle()}")
    return module


def reversed_view(tensor: Any) -> Any:
    """The same memory with the axes in the other order."""
    return tensor.permute(tuple(range(tensor.dim()))[::-1])


def look_into(value: Any) -> tuple[Any, Any]:
    """A plain tensor or array over the memory of one, and the object that stands for it from then on.

    That is ``value`` itself, but for tensors with a conjugate or negative bit: no memory shows their values, so a
    tensor that has them in memory takes their place. RESULT_TYPE, DEVICE for what Fortran cannot look into.
    """
    shown = unpack(value)[1][0]
    return shown, shown if is_tensor(value) and (value.is_conj() or value.is_neg()) else value


def overwrite(target: Any, value: Any) -> None:
    """Copy a tensor into another, in whose memory it may lie."""
    target.copy_(value.clone() if _overlap(target, value) else value)


def _overlap(one: Any, other: Any) -> bool:
    """Whether the memory behind two tensors has a byte in common: all of it, since a needless copy does no harm."""
    (begin, end), (other_begin, other_end) = _reach(one), _reach(other)
    return begin < other_end and other_begin < end and one.device == other.device


def _reach(tensor: Any) -> tuple[int, int]:
    """Address of the first byte, and the one after the last. The core makes a storage of each array of the program."""
    storage = tensor.untyped_storage()
    begin = storage.data_ptr()
    return begin, begin + storage.nbytes()


def write_through(target: Any, value: Any, same_layout: bool) -> None:
    """Write a value into a tensor made of an array, which has the graph of the value from then on.

    SHAPE, DTYPE: nothing is broadcast or converted.
    """
    wrong = "SHAPE" if target.shape != value.shape else "DTYPE" if target.dtype != value.dtype else ""
    if wrong:
        raise FtnPytorchError(
            wrong,
            f"the array is {kind(target, not same_layout)}, and what is assigned to its tensor "
            f"{kind(value, not same_layout)}; nothing is broadcast or converted",
        )
    if target.grad_fn is not None:
        target.detach_()  # the graph of earlier values would grow with every assignment
    overwrite(target, value)


def require_writable(target: Any) -> None:
    """ARGUMENT for a view of a tensor with a graph: what the core writes would be no part of it."""
    if target.grad_fn is not None and private_names.is_view(target):
        raise FtnPytorchError(
            "ARGUMENT",
            'a view of a tensor with a graph cannot be an output: assign to it with torch_call("Tensor.copy_", ...)',
        )


def written(target: Any) -> None:
    """The core has written into its memory: the graph of the values before ends, and torch counts the change."""
    import torch

    end_graph(target)
    if not target.is_inference():
        torch.autograd.graph.increment_version(target)


def end_graph(target: Any) -> None:
    """Of values that are no more there. A view keeps its own: other parts of what it shows are still there."""
    if target.grad_fn is not None and not private_names.is_view(target):
        target.detach_()


def describe_operands(left: Any, right: Any, same_layout: bool) -> str:
    """Lines that say what the operands of a failed operator were."""
    return f"  left: {kind(left, not same_layout)}\n  right: {kind(right, not same_layout)}"
