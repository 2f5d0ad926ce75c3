# SPDX-License-Identifier: MIT
"""Gradients of a network that many ranks train together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import groups, private_names
from .errors import FtnPytorchError


def average_gradients(network: Any, group: Any = None, *, samples: int | None = None) -> None:
    """Replace all gradients by their averages over the ranks of a process group, by one all-reduce for each type.

    Call it on all ranks after ``backward`` and before the step of the optimizer. A parameter without a gradient on a
    rank counts as one whose gradient is zero there. Without ``samples`` it can be part of a recorded function, which
    torch's own ``all_reduce`` cannot.

    samples: how many samples the loss of this rank is the mean of. The average is then that over all samples, as one
    rank with all of them would have it. A rank without samples gives 0, need not call ``backward``, and what its
    gradients hold does not count, even if it is not a number. If no rank has samples all gradients are zero. A function
    that does this is not recorded: where the number of one rank changes, this rank alone would record anew, and make
    the call twice, once for comparison, while the others make it once.

    network: a torch.nn.Module, or an iterable of parameters. group: of torch.distributed, by default that of all ranks,
    which the first call makes with the communicator that the script was loaded with (``init_process_group``).
    ARGUMENT if there is neither.
    """
    import torch

    if samples is not None and (isinstance(samples, bool) or samples < 0):
        raise FtnPytorchError("ARGUMENT", f"average_gradients: samples is {samples}, it must be 0 or more")
    group = groups.require_group("average_gradients") if group is None else group
    given: Iterable[Any] = network.parameters() if isinstance(network, torch.nn.Module) else network
    parameters = [parameter for parameter in given if parameter.requires_grad]
    with torch.no_grad():
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        share = None if samples is None or not parameters else _share(samples, parameters[0].device, group)
        for dtype in dict.fromkeys(parameter.grad.dtype for parameter in parameters):
            gradients = [parameter.grad for parameter in parameters if parameter.grad.dtype == dtype]
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            if share is None:
                total = private_names.all_reduce(flat, "sum", group) / group.size()
            else:
                weighted = flat * share if samples else torch.zeros_like(flat)
                total = private_names.all_reduce(weighted, "sum", group)
            parts = total.split([gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts):
                gradient.copy_(part.view_as(gradient))


def _share(samples: int, device: Any, group: Any) -> float:
    """Samples of this rank as a part of those of all ranks. A number of Python, which ends a recording."""
    import torch

    count = torch.full((), float(samples), dtype=torch.float64, device=device)
    return samples / max(1.0, float(private_names.all_reduce(count, "sum", group)))
