# SPDX-License-Identifier: MIT
"""Gradients of a network that many ranks train together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import private_names
from .errors import FtnPytorchError


def average_gradients(network: Any, group: Any = None) -> None:
    """Replace all gradients by their averages over the ranks of a process group, by one all-reduce for each type.

    Call it on all ranks after ``backward`` and before the step of the optimizer. A parameter without a gradient on a
    rank counts as one whose gradient is zero there. It can be part of a recorded function, which torch's own
    ``all_reduce`` cannot.

    network: a torch.nn.Module, or an iterable of parameters. group: of torch.distributed, by default that of all ranks.
    ARGUMENT if there is no process group.
    """
    import torch
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        raise FtnPytorchError(
            "ARGUMENT",
            "average_gradients needs a process group: call torch.distributed.init_process_group first, for example in "
            "ftn_pytorch_setup",
        )
    group = distributed.group.WORLD if group is None else group
    given: Iterable[Any] = network.parameters() if isinstance(network, torch.nn.Module) else network
    parameters = [parameter for parameter in given if parameter.requires_grad]
    with torch.no_grad():
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        for dtype in dict.fromkeys(parameter.grad.dtype for parameter in parameters):
            gradients = [parameter.grad for parameter in parameters if parameter.grad.dtype == dtype]
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            total = private_names.all_reduce(flat, "sum", group) / group.size()
            parts = total.split([gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts):
                gradient.copy_(part.view_as(gradient))
