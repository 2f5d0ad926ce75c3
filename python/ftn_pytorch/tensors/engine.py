# SPDX-License-Identifier: MIT
"""Python as the engine of tensors: what the core asks of torch beside operators."""

from __future__ import annotations

from typing import Any

from ..errors import FtnPytorchError, did_you_mean, summary
from ..values.dtypes import OF_CODE


def written(tensor: Any) -> None:
    """The core has written into its memory: torch counts the change."""
    import torch

    if not tensor.is_inference():
        torch.autograd.graph.increment_version(tensor)


def torch_dtype(name: str) -> Any:
    """An element type of torch by its name, "float32"; ARGUMENT if there is none."""
    import torch

    found = getattr(torch, name.removeprefix("torch."), None)
    if isinstance(found, torch.dtype):
        return found
    raise FtnPytorchError("ARGUMENT", f"torch has no element type {name!r}{did_you_mean(name, OF_CODE.values())}")


def enter_autocast(device: str, dtype: str) -> Any:
    """torch.autocast on this thread until its ``__exit__``; ARGUMENT for what torch does not know.

    ``device``: type of device, empty for "cpu". ``dtype``: empty for that of torch for the device.
    """
    import torch

    wanted = torch_dtype(dtype) if dtype else None
    try:
        context = torch.autocast(device or "cpu", dtype=wanted)
    except (RuntimeError, ValueError) as failure:
        raise FtnPytorchError("ARGUMENT", f"autocast is not possible: {summary(failure)}") from failure
    context.__enter__()
    return context
