# SPDX-License-Identifier: MIT
"""What users give to parts of the library, as tensors."""

from __future__ import annotations

from typing import Any


def as_tensor(value: Any) -> Any:
    """A tensor where it is; anything else as one on the host, whatever torch's default device is."""
    import torch

    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value, device="cpu")
