# SPDX-License-Identifier: MIT
"""What the fused kernels of torch's optimizers can step.

They walk the memory of a parameter, its gradient and its moments as if all of it were theirs and laid out alike. A
section of an array would be left in part, and what lies beside it changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any


def can_step(tensors: Iterable[Any]) -> bool:
    """True for dense parameters of floating point numbers."""
    return all(each.is_floating_point() and is_dense(each) for each in tensors)


def is_dense(tensor: Any) -> bool:
    """True for a tensor with its elements side by side, in any order."""
    import torch

    return torch.empty_like(tensor, device="meta").stride() == tensor.stride()


@contextlib.contextmanager
def prepared(optimizer: Any) -> Iterator[None]:
    """What a step of ``optimizer`` needs around it where a kernel makes it, after gradients were computed."""
    import torch

    groups = list(optimizer.param_groups)
    stepped = [x for group in groups if group.get("fused") for x in group["params"] if x.grad is not None]
    _lay_out(stepped)
    optimizer.param_groups[:] = [part for group in groups for part in _parts(optimizer, group)]
    try:
        yield
    finally:
        optimizer.param_groups[:] = groups
    if stepped:  # the kernels count no change, and a graph may need the values before
        torch.autograd.graph.increment_version(stepped)


def _parts(optimizer: Any, group: dict[str, Any]) -> list[dict[str, Any]]:
    """A group, or two where some get their first momentum only now: the kernel wants that of all or none."""
    if not (group.get("fused") and group.get("momentum")):
        return [group]
    begun = [x for x in group["params"] if optimizer.state.get(x, {}).get("momentum_buffer") is not None]
    known = {id(x) for x in begun}
    begin = [x for x in group["params"] if id(x) not in known]
    return [{**group, "params": part} for part in (begun, begin)] if begun and begin else [group]


def _lay_out(parameters: Iterable[Any]) -> None:
    """Give dense parameters gradients that are laid out as they are. Those of autograd are, others need not be."""
    import torch

    for each in parameters:
        if each.grad.stride() != each.stride():
            each.grad = torch.empty_like(each).copy_(each.grad)
