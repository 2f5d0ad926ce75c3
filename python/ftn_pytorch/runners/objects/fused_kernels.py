# SPDX-License-Identifier: MIT
"""What the fused kernels of torch's optimizers can step.

They walk the memory of a parameter, its gradient and its moments as if all of it were theirs and laid out alike. A
section of an array would be left in part, and what lies beside it changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def can_step(tensors: Iterable[Any]) -> bool:
    """True for dense parameters of floating point numbers."""
    return all(each.is_floating_point() and is_dense(each) for each in tensors)


def is_dense(tensor: Any) -> bool:
    """True for a tensor with its elements side by side, in any order."""
    import torch

    return torch.empty_like(tensor, device="meta").stride() == tensor.stride()


def lay_out(parameters: Iterable[Any]) -> None:
    """Give dense parameters gradients that are laid out as they are. Those of autograd are, others need not be."""
    import torch

    for each in parameters:
        if each.grad is not None and each.grad.stride() != each.stride():
            each.grad = torch.empty_like(each).copy_(each.grad)
