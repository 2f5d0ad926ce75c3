# SPDX-License-Identifier: MIT
"""Gradients of a network that many ranks train together."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Set
from typing import Any, NoReturn

from ..errors import FtnPytorchError, listed
from ..system import private_names, thread_recorder
from . import communicator, equality, failed_calls, process_group, sums

_NAME = "average_gradients"
# Less than any average number of samples that is none.
_LEAST = 1e-12
# Counters of calls begin anew after so many, each of which is exact in all types that are averaged, bfloat16 among
# them; the counter of the next network is so far ahead.
_TURN = 251
_OFFSET = 97
_ADVICE = f"{communicator.APART} Nothing was averaged. End all ranks, and go on from a checkpoint"

# By the first parameter of what is averaged: group, shapes and types of the parameters, and the calls with them.
_agreed: Any = None
_networks: Any = weakref.WeakKeyDictionary()


class _Calls:
    """Counts the calls with one network in a group, in tensors: a recording counts on.

    Each rank has a place of its own in what is summed, so that the sum tells where each of them is.
    """

    def __init__(self, group: Any, device: Any, first: int) -> None:
        import torch

        with torch.inference_mode(False), torch.no_grad():
            self.one = torch.zeros(group.size(), device=device)
            self.one[group.rank()] = 1
            self.mine = self.one * (first % _TURN)
        self._rank = group.rank()

    def position(self) -> Any:
        return self.mine.clone()

    def is_at(self, position: Any) -> bool:
        return bool((self.mine == position).all())

    def count(self) -> None:
        self.mine.add_(self.one).remainder_(_TURN)

    def check(self, seen: Any, averages: Any) -> Any:
        """The averages. PYTHON unless all ranks were in the same call; not numbers in a recording on a device."""
        import torch

        expected = self.mine.sum().to(seen.dtype)
        if not thread_recorder.is_recording():
            calls = torch.stack([seen, expected.expand_as(seen)]).real.tolist()
            if calls[0] != calls[1]:
                _refuse(calls[0], calls[1][0], _NAME)
            return averages
        is_same = (seen == expected).all()
        if seen.is_cpu:
            text = f"{_NAME}: rank {self._rank} and others are in different calls of it. {_ADVICE}"
            private_names.assert_later(is_same, text)
            return averages
        return torch.where(is_same, averages, torch.nan)


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
    parameters, or other numbers in them at the first call. PYTHON if another rank does not come, or if it is in another
    call: it has passed over an error, or taken another way. Then nothing is averaged on any rank.
    """
    import torch

    if samples is not None and (isinstance(samples, bool) or samples < 0):
        raise FtnPytorchError("ARGUMENT", f"{_NAME}: samples is {samples}, it must be 0 or more")
    if isinstance(network, Set):
        raise FtnPytorchError("ARGUMENT", f"{_NAME}: a set has another order on each rank, give a list of parameters")
    given: Iterable[Any] = network.parameters() if isinstance(network, torch.nn.Module) else network
    parameters = [parameter for parameter in given if parameter.requires_grad]
    by_mpi = _calls_of_mpi(network, parameters) if group is None else None
    calls: Any = by_mpi
    if by_mpi is not None:
        average = by_mpi.average
    else:
        group = process_group.require_group(_NAME) if group is None else group
        calls = _calls(network, parameters, group)
        average = functools.partial(_average_in_group, group, calls)
    if calls is not None:
        failed_calls.averaged(calls)
    with torch.no_grad():
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            elif parameter.grad.layout is not torch.strided:
                parameter.grad = parameter.grad.to_dense()
        share = None
        if samples is not None and parameters:
            # A number of Python, which ends a recording. Averages of shares are sums if they are that much larger
            device = "cpu" if by_mpi is not None else parameters[0].device
            mine = torch.full((1,), float(samples), dtype=torch.float64, device=device)
            share = samples / max(float(average(mine)), _LEAST)
        for dtype in dict.fromkeys(parameter.grad.dtype for parameter in parameters):
            gradients = [parameter.grad for parameter in parameters if parameter.grad.dtype == dtype]
            flat = [gradient.reshape(-1) for gradient in gradients]
            if share is not None:
                flat = [each * share if samples else torch.zeros_like(each) for each in flat]
            parts = average(torch.cat(flat)).split([gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts):
                gradient.copy_(part.view_as(gradient))


def _average_in_group(group: Any, calls: _Calls | None, flat: Any) -> Any:
    """By a process group. Each rank has a place for its calls behind the numbers; ``calls``: None for one rank."""
    import torch

    if calls is None:
        return _sum(flat, group) / group.size()
    calls.count()
    total = _sum(torch.cat([flat, calls.mine.to(dtype=flat.dtype, device=flat.device)]), group)
    total, seen = total.split([flat.numel(), group.size()])
    return calls.check(seen, total) / group.size()


def _sum(tensor: Any, group: Any) -> Any:
    with process_group.exchange(_NAME):
        return private_names.all_reduce(tensor, "sum", group)


def _refuse(calls: list[float], mine: float, purpose: str) -> NoReturn:
    """PYTHON, with who is elsewhere, by how many calls. calls: counters of all ranks; mine: that of this one."""
    off = [int(each - mine + _TURN // 2) % _TURN - _TURN // 2 for each in calls]
    most = max(off, key=off.count)
    others = [(rank, each - most) for rank, each in enumerate(off) if each != most]
    told = [f"rank {rank} is {abs(n)} {'ahead of' if n > 0 else 'behind'} rank {off.index(most)}" for rank, n in others]
    raise FtnPytorchError("PYTHON", f"{purpose}: the ranks are in different calls of it: {listed(told)}. {_ADVICE}")


def _calls_of_mpi(network: Any, parameters: list[Any]) -> sums.CallsOfMpi | None:
    """The calls with these parameters by MPI; None where a process group is asked for, as for gradients on devices.

    What was averaged by MPI before stays so: a recording has it, on this rank or on others.
    """
    of_network = _of_network(parameters)
    described = _described(parameters)
    known = of_network.get(("MPI", described))
    if known is not None and known.ours() is not None:
        return known
    if process_group.is_there():
        return None
    ours = communicator.current()
    if ours is None or not all(each.is_cpu for each in parameters):
        return None
    _require_same(network, parameters, described, lambda text: ours.gather(text, purpose=_NAME))
    found = of_network["MPI", described] = sums.CallsOfMpi(ours, _next_network(ours))
    return found


def _calls(network: Any, parameters: list[Any], group: Any) -> _Calls | None:
    """The calls with these parameters, None for a single rank; at the first one FORMAT unless all ranks have the same.

    Sums would be of what does not belong together, or end the process where their lengths differ. Ranks ask each other
    once for each network, so a rank must not freeze a part of it later than others.
    """
    known, described = _of_network(parameters), _described(parameters)
    key = (group.group_name, described)
    if key not in known:
        _require_same(network, parameters, described, lambda text: process_group.gather(text, group, _NAME))
        first = _next_network(group) * _OFFSET
        known[key] = _Calls(group, parameters[0].device, first) if group.size() > 1 and parameters else None
    calls = known[key]
    if calls is not None:
        thread_recorder.keep(calls.mine, calls.one)
    return calls


def _of_network(parameters: list[Any]) -> dict[Any, Any]:
    """The calls with a list of parameters, by group, shapes and types."""
    from torch.utils.weak import WeakIdKeyDictionary

    global _agreed
    if _agreed is None:
        _agreed = WeakIdKeyDictionary()
    return _agreed.setdefault(parameters[0], {}) if parameters else {}


def _described(parameters: list[Any]) -> tuple[Any, ...]:
    import torch

    return tuple(
        ("no shape yet",) if torch.nn.parameter.is_lazy(each) else (each.dtype, each.shape) for each in parameters
    )


def _next_network(ranks: Any) -> int:
    """Of those that a communicator or a group averages: its ranks need not know of others that one of them is in."""
    _networks[ranks] = _networks.get(ranks, 0) + 1
    return _networks[ranks]


def _require_same(
    network: Any, parameters: list[Any], described: tuple[Any, ...], gather: Callable[[str], list[str]]
) -> None:
    """FORMAT unless all ranks have the same parameters, in the same order, and the same numbers in them."""
    import torch

    names = {}
    if isinstance(network, torch.nn.Module):
        names = {id(each): name for name, each in network.named_parameters()}
    titles = [names.get(id(each), f"parameter {number}") for number, each in enumerate(parameters, 1)]
    equality.compare(
        {title: " ".join(map(str, about)) for title, about in zip(titles, described)},
        gather,
        f"{_NAME}: the ranks do not average the same parameters",
        "Make the same network on all ranks, freeze the same parts of it (requires_grad), and name lists of parameters "
        "in one order",
    )
    equality.compare(
        {
            title: "" if torch.nn.parameter.is_lazy(each) else equality.digest(each)
            for title, each in zip(titles, parameters)
        },
        gather,
        f"{_NAME}: the ranks do not begin with the same network",
        "Make it of the same random numbers on all ranks (torch.manual_seed), or restore the same checkpoint",
    )
