# SPDX-License-Identifier: MIT
"""Which rank this process has among those that train together, and whether ranks train together at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from ..system import launcher, process
from . import communicator

# Modules by which a script may average over ranks without a torch.distributed group.
_MESSAGE_PASSING = ("mpi4py.MPI", "horovod.torch")
_AVERAGES = (f"{__package__}.gradients", f"{__package__}.means")
_PACKAGE = __package__.rpartition(".")[0]


def rank_and_size() -> tuple[int, int]:
    """Those of the communicator of the module at work, or of this process; of the job without one, or with several."""
    found = communicator.current_if_clear()
    return launcher.launched_rank_and_size() if found is None else (found.rank, found.size)


def rank() -> int:
    """Rank among those that train together, from 0 on; for scripts.

    While a script is loaded, or a function of it is called, it is that in the communicator of its load. A thread of
    the script, or a module without one, has that of the only communicator of the process, ARGUMENT if there are
    several. Without any the launcher of the job tells, and 0 outside of MPI.
    """
    communicator.current()
    return rank_and_size()[0]


def world_size() -> int:
    """Number of ranks that train together, 1 outside of MPI; see ``rank``."""
    found = communicator.current()
    return launcher.launched_rank_and_size()[1] if found is None else found.size


def is_known() -> bool:
    """False while a script is loaded for all ranks of a node, see ``node``."""
    found = communicator.current()
    return found is None or found.is_ranked


def with_rank(name: str | os.PathLike[str]) -> str:
    """Name of a file or folder in which ``%r`` is ``rank``."""
    name = os.fspath(name)
    return name.replace("%r", str(rank())) if "%r" in name else name


def warn_of_lone_ranks(names: Mapping[str, Any]) -> None:
    """Warn once, on rank 0, when several ranks train and nothing is there by which they could train one network.

    ``names`` are those of the script: with a communicator ``average_gradients`` makes the group at its first call.
    """
    rank, size = rank_and_size()
    if rank != 0 or size < 2 or _in_group() or any(name in sys.modules for name in _MESSAGE_PASSING):
        return
    if communicator.current_if_clear() is None:
        process.warn_once(
            f"ftn_pytorch_train runs on {size} MPI ranks without a torch.distributed group and without mpi4py: each "
            "rank trains a network of its own. To train one, load with communicator= and call "
            "ftn_pytorch.average_gradients(net) after backward, or train on one rank."
        )
    elif not any(name in sys.modules for name in _AVERAGES) and not any(
        value is sys.modules[_PACKAGE] for value in names.values()
    ):
        process.warn_once(
            f"ftn_pytorch_train runs on the {size} ranks of a communicator, and the script does not use "
            "average_gradients: each rank trains a network of its own. Call ftn_pytorch.average_gradients(net) after "
            "backward, or load without communicator=."
        )


def _in_group() -> bool:
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and distributed.is_initialized()
