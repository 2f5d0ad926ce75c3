# SPDX-License-Identifier: MIT
"""Inputs of types that Fortran lacks: unsigned integers and half precision, made of what Fortran has."""

from __future__ import annotations

import sys
from typing import Any

from ...errors import FtnPytorchError
from ...values import dtype_name, is_tensor

_UNSIGNED = {f"uint{bits}": bits for bits in (8, 16, 32, 64)}
_HALF = ("float16", "bfloat16")


def is_narrow(dtype: str | None) -> bool:
    """Whether no kind of Fortran is of this type."""
    return dtype in _UNSIGNED or dtype in _HALF


def advice(dtype: str) -> str:
    """What to pass for an input of such a type."""
    if dtype in _UNSIGNED:
        return "Fortran has no such type: pass an integer array without negative numbers, which is converted"
    return "Fortran has no such type: pass a real array, which is converted"


def narrowed(dtype: str | None, value: Any, name: str) -> Any:
    """A tensor or NumPy array as one of ``dtype``, the value itself where nothing is to be done or can be done.

    Integers become unsigned, reals half precision. DTYPE for numbers that are out of range then. ``name`` is that of
    the input, for messages.
    """
    if not is_narrow(dtype) or not hasattr(value, "dtype"):
        return value
    found = dtype_name(value)
    if dtype in _UNSIGNED and found.startswith("int"):
        return _unsigned(dtype, value, name)
    if dtype in _HALF and found in ("float32", "float64"):
        return _half(dtype, value, name)
    return value


def _unsigned(dtype: Any, value: Any, name: str) -> Any:
    if 0 not in value.shape:
        least, most = int(value.min()), int(value.max())
        if least < 0 or most >= 1 << _UNSIGNED[dtype]:
            wrong = least if least < 0 else most
            raise FtnPytorchError("DTYPE", f"{name} holds {wrong}, which is out of the range of {dtype}")
    return converted(value, dtype)


def _half(dtype: Any, value: Any, name: str) -> Any:
    result = converted(value, dtype)
    module = sys.modules["torch" if is_tensor(value) else "numpy"]
    if bool((module.isinf(result) & ~module.isinf(value)).any()):
        raise FtnPytorchError("DTYPE", f"{name} holds numbers that are too large for {dtype}")
    return result


def converted(value: Any, dtype: str) -> Any:
    """A tensor or NumPy array of another type."""
    if is_tensor(value):
        return value.to(getattr(sys.modules["torch"], dtype))
    with sys.modules["numpy"].errstate(over="ignore"):
        return value.astype(dtype)
