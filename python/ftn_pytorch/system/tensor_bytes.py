# SPDX-License-Identifier: MIT
"""The bytes of a tensor, also of types that NumPy lacks."""

from __future__ import annotations

from typing import Any


def bytes_of(tensor: Any, dtype: Any = None) -> Any:
    """The elements of a dense tensor as bytes, (bytes,) of uint8: its own memory where that is contiguous, or a copy.

    dtype: integers in place of bytes, whose size divides that of an element; larger ones are compared faster. torch
    sees no memory as another type whose stride is not 1, and a single element may have any.
    """
    import torch

    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8 if dtype is None else dtype)
