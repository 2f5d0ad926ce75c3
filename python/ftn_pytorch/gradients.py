# SPDX-License-Identifier: MIT
"""Gradients of a network that many ranks train together."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

from . import agreement, groups, private_names
from .errors import FtnPytorchError

_NAME = "average_gradients"

# Names of groups, with the shapes and types of parameters that were found to be the same on all their ranks.
_agreed: set[tuple[Any, ...]] = set()


def average_gradients(network: Any, group: Any = None, *, samples: int | None = None) -> None:
    """Replace all gradients by their averages over the ranks of a process group, by one all-reduce for each type.

    Call it on all ranks after ``backward`` and before the step of the optimizer. A parameter without a gradient on a
    rank counts as one whose gradient is zero there; sparse gradients become dense ones. The first call with these
    parameters makes sure that all ranks have the same. Without ``samples`` it can be part of a recorded function, which
    torch's own ``all_reduce`` cannot.

    samples: how many samples the loss of this rank is the mean of. The average is then that over all samples, as one
    rank with all of them would have it. A rank without samples gives 0, need not call ``backward``, and what its
    gradients hold does not count, even if it is not a number. If no rank has samples all gradients are zero. A function
    that does this is not recorded: where the number of one rank changes, this rank alone would record anew, and make
    the call twice, once for comparison, while the others make it once.

    network: a torch.nn.Module, or an iterable of parameters. group: of torch.distributed, by default that of all ranks,
    which the first call makes with the communicator that the script was loaded with (``init_process_group``).
    ARGUMENT if there is neither, or for a set of parameters, which has no order. FORMAT on all ranks if they have other
    parameters. PYTHON if another rank does not come.
    """
    import torch

    if samples is not None and (isinstance(samples, bool) or samples < 0):
        raise FtnPytorchError("ARGUMENT", f"{_NAME}: samples is {samples}, it must be 0 or more")
    if isinstance(network, Set):
        raise FtnPytorchError("ARGUMENT", f"{_NAME}: a set has another order on each rank, give a list of parameters")
    group = groups.require_group(_NAME) if group is None else group
    given: Iterable[Any] = network.parameters() if isinstance(network, torch.nn.Module) else network
    parameters = [parameter for parameter in given if parameter.requires_grad]
    _require_same(network, parameters, group)
    with torch.no_grad():
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            elif parameter.grad.layout is not torch.strided:
                parameter.grad = parameter.grad.to_dense()
        share = None if samples is None or not parameters else _share(samples, parameters[0].device, group)
        for dtype in dict.fromkeys(parameter.grad.dtype for parameter in parameters):
            gradients = [parameter.grad for parameter in parameters if parameter.grad.dtype == dtype]
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            if share is None:
                total = _sum(flat, group) / group.size()
            else:
                weighted = flat * share if samples else torch.zeros_like(flat)
                total = _sum(weighted, group)
            parts = total.split([gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts):
                gradient.copy_(part.view_as(gradient))


def _share(samples: int, device: Any, group: Any) -> float:
    """Samples of this rank as a part of those of all ranks. A number of Python, which ends a recording."""
    import torch

    count = torch.full((), float(samples), dtype=torch.float64, device=device)
    return samples / max(1.0, float(_sum(count, group)))


def _sum(tensor: Any, group: Any) -> Any:
    with groups.exchange(_NAME):
        return private_names.all_reduce(tensor, "sum", group)


def _require_same(network: Any, parameters: list[Any], group: Any) -> None:
    """FORMAT unless all ranks have the same parameters, in the same order.

    Sums would be of what does not belong together, or end the process where their lengths differ. Ranks ask each other
    once for each network, so a rank must not freeze a part of it later than others.
    """
    import torch

    described = tuple(
        ("no shape yet",) if torch.nn.parameter.is_lazy(each) else (each.dtype, each.shape) for each in parameters
    )
    key = (group.group_name, described)
    if key in _agreed:
        return
    names = {}
    if isinstance(network, torch.nn.Module):
        names = {id(each): name for name, each in network.named_parameters()}
    agreement.compare(
        {
            names.get(id(each), f"parameter {number}"): " ".join(map(str, about))
            for number, (each, about) in enumerate(zip(parameters, described), 1)
        },
        lambda text: groups.gather(text, group, _NAME),
        f"{_NAME}: the ranks do not average the same parameters",
        "Make the same network on all ranks, freeze the same parts of it (requires_grad), and name lists of parameters "
        "in one order",
    )
    _agreed.add(key)
