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
        is_in_group = process_group.is_there()
        calls = _calls_of_mpi(is_in_group) if given.is_cpu else None
        if calls is not None:
            failed_calls.averaged(calls)
            return calls.average(given)
        if _is_alone(is_in_group):
            return given.clone()
        group = process_group.require_group(_NAME)
        with process_group.exchange(_NAME):
            return private_names.all_reduce(given, "sum", group) / group.size()


def combine(flat: Any, operation: str, purpose: str) -> Any:
    """A row of float64 added over all ranks ("sum"), or the largest numbers of them ("max", without NaN), on the host.

    As ``all_reduce_mean``, but what is on a device goes over MPI, too, and nothing records it. purpose: what errors
    call it.
    """
    import torch

    with torch.no_grad():
        is_in_group = process_group.is_there()
        calls = _calls_of_mpi(is_in_group)
        if calls is not None:
            failed_calls.averaged(calls)
            return calls.combine(flat.detach().cpu(), operation, purpose)
        if _is_alone(is_in_group):
            return flat.detach().cpu()
        group = process_group.require_group(purpose)
        with process_group.exchange(purpose):
            return private_names.all_reduce(flat.detach(), operation, group).cpu()


def _is_alone(is_in_group: bool) -> bool:
    return not is_in_group and communicator.current() is None and launcher.launched_rank_and_size()[1] < 2


def _calls_of_mpi(is_in_group: bool) -> sums.CallsOfMpi | None:
    """The calls by MPI, None where a process group is there first. They stay so: a recording has it, on some rank."""
    ours = communicator.current_if_clear() if is_in_group else communicator.current()
    if ours is not None and ours not in _calls and not is_in_group:
        _calls[ours] = sums.CallsOfMpi(ours, sums.NO_NETWORK)
    return None if ours is None else _calls.get(ours)
