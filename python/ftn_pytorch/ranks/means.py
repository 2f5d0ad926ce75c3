# SPDX-License-Identifier: MIT
"""The average of a tensor over the ranks, for losses, statistics and decisions, and what else is made of all ranks."""

from __future__ import annotations

import weakref
from typing import Any

from ..errors import FtnPytorchError
from ..system import launcher, private_names
from . import communicator, failed_calls, process_group, sums

_NAME = sums.MEAN

_calls: weakref.WeakKeyDictionary[communicator.Communicator, sums.CallsOfMpi] = weakref.WeakKeyDictionary()


def all_reduce_mean(x: Any) -> Any:
    """A new tensor: the average of ``x`` over all ranks, the same bits on each. All ranks call it, with one shape.

    By MPI with the communicator of the script where there was no process group at the first call and ``x`` is in host
    memory, otherwise by the process group. A recorded function may call it. No gradient passes through it. A copy of
    ``x`` outside of MPI; ARGUMENT in a job of several ranks without communicator and group.

    x: a tensor of real or complex numbers, otherwise DTYPE. PYTHON if a rank does not come, or, by MPI, if it is in
    another call.
    """
    import torch

    if not (x.is_floating_point() or x.is_complex()):
        raise FtnPytorchError("DTYPE", f"{_NAME}: the average of {x.dtype} is none; give it as floating-point numbers")
    given = x.detach()
    with torch.no_grad():
        way = _way(given.is_cpu, _NAME)
        if way is None:
            return given.clone()
        if isinstance(way, sums.CallsOfMpi):
            return way.average(given)
        with process_group.exchange(_NAME):
            return private_names.all_reduce(given, "sum", way) / way.size()


def combine(flat: Any, operation: str, purpose: str) -> Any:
    """A row of float64 added over all ranks ("sum"), or the largest numbers of them ("max", without NaN), on the host.

    As ``all_reduce_mean``, but what is on a device goes over MPI, too, and nothing records it. purpose: what errors
    call it.
    """
    import torch

    with torch.no_grad():
        way = _way(True, purpose)
        if way is None or isinstance(way, sums.CallsOfMpi):
            here = flat.detach().cpu()
            return here if way is None else way.combine(here, operation, purpose)
        with process_group.exchange(purpose):
            return private_names.all_reduce(flat.detach(), operation, way).cpu()


def _way(by_mpi: bool, purpose: str) -> Any:
    """The calls by MPI, where that may be; the process group, where it is there first; None for a process alone.

    Calls by MPI stay so: a recording has it, on some rank.
    """
    is_in_group = process_group.is_there()
    ours = communicator.current_if_clear() if is_in_group else communicator.current()
    if by_mpi and ours is not None:
        if ours not in _calls and not is_in_group:
            _calls[ours] = sums.CallsOfMpi(ours, sums.NO_NETWORK)
        if ours in _calls:
            failed_calls.averaged(_calls[ours])
            return _calls[ours]
    is_alone = not is_in_group and ours is None and launcher.launched_rank_and_size()[1] < 2
    return None if is_alone else process_group.require_group(purpose)
