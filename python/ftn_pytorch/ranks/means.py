# SPDX-License-Identifier: MIT
"""The average of a tensor over the ranks, for losses, statistics and decisions."""

from __future__ import annotations

import weakref
from typing import Any

from ..errors import FtnPytorchError
from ..host import launcher, private_names
from . import communicator, failed_calls, process_group, sums

_NAME = "all_reduce_mean"
# Networks count from 1 on.
_NO_NETWORK = 0

_calls: weakref.WeakKeyDictionary[communicator.Communicator, sums.CallsOfMpi] = weakref.WeakKeyDictionary()


def all_reduce_mean(x: Any) -> Any:
    """A new tensor: the average of ``x`` over all ranks, the same bits on each. All ranks call it, with one shape.

    By MPI with the communicator of the script where there is no process group and ``x`` is in host memory, as
    ``average_gradients`` does, otherwise by the process group. A recorded function may call it. No gradient passes
    through it. A copy of ``x`` outside of MPI; ARGUMENT in a job of several ranks without communicator and group.

    x: a tensor of real or complex numbers, otherwise DTYPE. PYTHON if a rank does not come, or is in another call.
    """
    import torch

    if not (x.is_floating_point() or x.is_complex()):
        raise FtnPytorchError("DTYPE", f"{_NAME}: the average of {x.dtype} is none; give it as floating-point numbers")
    given = x.detach()
    with torch.no_grad():
        is_in_group = torch.distributed.is_available() and torch.distributed.is_initialized()
        ours = None if is_in_group else communicator.of_one_group()
        if ours is None and not is_in_group and launcher.launched_rank_and_size()[1] < 2:
            return given.clone()
        if ours is not None and given.is_cpu:
            known = _calls.get(ours)
            if known is None:
                known = _calls[ours] = sums.CallsOfMpi(ours, _NO_NETWORK)
            failed_calls.averaged(known)
            return known.average(given)
        group = process_group.require_group(_NAME)
        with process_group.exchange(_NAME):
            return private_names.all_reduce(given, "sum", group) / group.size()
