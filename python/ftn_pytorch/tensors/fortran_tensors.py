# SPDX-License-Identifier: MIT
"""Tensors that Fortran holds: what the core asks for beside operators."""

from __future__ import annotations

from typing import Any

from ..errors import FtnPytorchError
from ..script.results import unpack
from ..values import is_tensor


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
    from ..system import extension

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
