# SPDX-License-Identifier: MIT
"""Kernels of torch that take the memory behind a tensor for granted, and what is looked at before one of them runs.

src/plugin/recording/trusting_kernels.cpp does the same without Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..values.fused_kernels import is_dense

STEPS = [f"aten::_fused_{optimizer}{form}" for optimizer in ("adagrad", "adam", "adamw", "sgd") for form in ("", "_")]
VIEW = "aten::_reshape_alias"

Check = Callable[[Mapping[str, Any]], None]


def check_of(name: str) -> Check | None:
    """What looks at the arguments of an operator, by their names, and raises a RuntimeError."""
    return _require_alike if name in STEPS else _require_inside if name == VIEW else None


def _require_alike(given: Mapping[str, Any]) -> None:
    """The kernels of optimizers walk all lists as if each tensor were dense, and laid out as the parameter is."""
    parameters = given["self"]
    for each in parameters:
        if not is_dense(each):
            raise RuntimeError("a parameter shares its memory with others")
    for name, value in given.items():
        if hasattr(value, "numel") and value.numel() != 1:
            raise RuntimeError(f"{name} is not one number")
        if not isinstance(value, list) or name == "self" or (not value and not _is_used(name, given)):
            continue
        if len(value) != len(parameters):
            raise RuntimeError(f"{name} has {len(value)} tensors for {len(parameters)} parameters")
        for number, (one, parameter) in enumerate(zip(value, parameters), 1):
            if not (one.numel() == 1 if name == "state_steps" else _form(one) == _form(parameter)):
                raise RuntimeError(f"{name} has another tensor than parameter {number} needs")


def _is_used(moments: str, given: Mapping[str, Any]) -> bool:
    """Whether a kernel looks at a list of moments."""
    if moments == "max_exp_avg_sqs":
        return given["amsgrad"]
    return moments != "momentum_buffer_list" or given["momentum"] != 0


def _form(tensor: Any) -> tuple:
    """Where each element lies. The stride of an axis of one element says nothing."""
    strides = [stride for size, stride in zip(tensor.shape, tensor.stride()) if size != 1]
    return tensor.shape, strides, tensor.dtype, tensor.device


def _require_inside(given: Mapping[str, Any]) -> None:
    """A view of any size and strides."""
    tensor, sizes, strides = given["self"], given["size"], given["stride"]
    if len(sizes) != len(strides):
        raise RuntimeError(f"a view has {len(sizes)} sizes and {len(strides)} strides")
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in zip(sizes, strides))
    there = tensor.untyped_storage().nbytes() // tensor.element_size()
    if min([*sizes, *strides], default=0) < 0 or (0 not in sizes and last >= there):
        raise RuntimeError("a view sees more than the memory of its tensor")
