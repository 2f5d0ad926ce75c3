# SPDX-License-Identifier: MIT
"""Inputs as arrays of NumPy, of the types that a model takes, for runners that do without torch."""

from __future__ import annotations

from typing import Any

from ...errors import FtnPytorchError
from ...values import dtype_name
from .input_specs import Input
from .narrow_types import converted, is_narrow, narrowed


def as_input(entry: Input, value: Any, dtype: str, where: str) -> Any:
    """An array for an input, the same one where nothing is to be done. DTYPE for a number that it cannot be.

    ``dtype``: what real arrays are cast to, "keep" for not at all.
    """
    import numpy

    if not hasattr(value, "__array_interface__"):
        if isinstance(value, str) or (isinstance(value, (float, complex)) and not str(entry.dtype).startswith("float")):
            raise FtnPytorchError("DTYPE", f"{where}: {entry.name} is {value!r}, the model expects {entry}")
        if not is_narrow(entry.dtype):
            return numpy.asarray(value, dtype=entry.dtype)
        value = numpy.asarray(value)
    if is_narrow(entry.dtype):
        return narrowed(entry.dtype, value, f"{where}: {entry.name}")
    return cast(value, dtype)


def cast(value: Any, dtype: str) -> Any:
    """A real array or tensor as one of ``dtype``, the same one for "keep". Other values pass."""
    found = dtype_name(value) if hasattr(value, "dtype") else ""
    return converted(value, dtype) if "float" in found and dtype not in ("keep", found) else value
