# SPDX-License-Identifier: MIT
"""Any value: whether it is a tensor or an array, asked without importing what makes them."""

from __future__ import annotations

import sys
from typing import Any


def loaded(name: str) -> Any:
    """A module that has been imported, by whomever, else None."""
    return sys.modules.get(name)


def is_tensor(value: Any) -> bool:
    torch = loaded("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: Any) -> bool:
    numpy = loaded("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_number(value: Any) -> bool:
    """True for a scalar of NumPy."""
    numpy = loaded("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def plain(value: Any) -> Any:
    """A number or text of a derived class, or of NumPy, as one of Python; all else as it is."""
    value = value.item() if is_number(value) else value
    if isinstance(value, bool):
        return value
    kind: Any = next((each for each in (int, float, complex, str) if isinstance(value, each)), None)
    return value if kind is None else str.__str__(value) if kind is str else kind(value)


def dtype_name(array: Any) -> str:
    """The type of a tensor or array as both torch and NumPy call it, such as "float32"."""
    return str(array.dtype).removeprefix("torch.")


def as_tensor(value: Any) -> Any:
    """A tensor where it is; anything else as one on the host, whatever torch's default device is."""
    import torch

    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value, device="cpu")
