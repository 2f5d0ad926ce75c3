# SPDX-License-Identifier: MIT
"""Process groups of torch.distributed over the MPI communicator of a script."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import resource
import socket
import time
from collections.abc import Iterator
from typing import Any

from ..errors import FtnPytorchError, summary
from . import communicator
from .communicator import TIMEOUT, Communicator
from .mpi import BACKEND

_NAME = "init_process_group"
# Of torch beside connections, and of what is opened soon.
_OTHER_FILES = 64

# The ranks that the group of this process was made for, as a handle of MPI, and the seconds they wait for each other.
_made_for: list[tuple[int, float]] = []


def init_process_group(backend: str | None = None, timeout: float | datetime.timedelta = TIMEOUT) -> None:
    """Make the process group of torch.distributed for all ranks of the communicator that the script was loaded with.

    All its ranks must call this, for example in ``ftn_pytorch_setup``. They find each other through the communicator,
    so no variable such as MASTER_ADDR has to be set; where it is set, it is the name of the host of rank 0.
    Nothing happens if the group is there already. It is destroyed when the program ends.

    backend: of torch.distributed; by default torch's own choice, gloo for the CPU and nccl for GPUs. "ftn_pytorch" is
    the MPI of the program: no socket is opened, no thread of the script can use it, and what averages by MPI without a
    group goes on to do so. timeout: seconds that this, and later each operation of the group, ``require_equal`` and
    ``restore`` wait for other ranks.
    ARGUMENT without a communicator, or if there is a group of other ranks; PYTHON if a rank does not come.
    """
    from torch import distributed

    ours = communicator.current()
    if ours is None:
        raise FtnPytorchError(
            "ARGUMENT",
            f"{_NAME} needs the communicator of the ranks: give it to load (communicator=MPI_COMM_WORLD), or call "
            "torch.distributed.init_process_group",
        )
    if not distributed.is_available():
        raise FtnPytorchError("ARGUMENT", f"{_NAME}: this torch was built without torch.distributed")
    if distributed.is_initialized():
        _require_group_of(ours)
        return
    limit = timeout if isinstance(timeout, datetime.timedelta) else datetime.timedelta(seconds=timeout)
    ours.timeout = limit.total_seconds()
    group = ours.group()
    if backend == BACKEND:
        from . import mpi_group

        store = mpi_group.store(ours)
    else:
        _make_room_for_connections(ours)
        store = _store(ours, limit)
    distributed.init_process_group(backend, store=store, rank=ours.rank, world_size=ours.size, timeout=limit)
    _made_for[:] = [(group, ours.timeout)]
    atexit.unregister(_destroy)
    atexit.register(_destroy)


def require_group(purpose: str) -> Any:
    """The group of all ranks, which is made now if there is a communicator; ARGUMENT without both, or if it is unclear.

    ``purpose`` is what the error calls it.
    """
    from torch import distributed

    if is_initialized():
        # Which one is meant need not be clear where all have the ranks of the group.
        if _made_for and not all(map(_is_of_group, communicator.meant())):
            _require_group_of(communicator.current())
    elif communicator.current() is not None:
        init_process_group()
    else:
        raise FtnPytorchError(
            "ARGUMENT",
            f"{purpose} needs a process group: load the script with communicator=MPI_COMM_WORLD, or call "
            "torch.distributed.init_process_group first, for example in ftn_pytorch_setup",
        )
    return distributed.group.WORLD


def is_initialized() -> bool:
    """True if torch.distributed has a group, whoever has made it."""
    from torch import distributed

    return distributed.is_available() and distributed.is_initialized()


def is_there() -> bool:
    """True if there is a group by which averages go: one over the MPI of the program is no other way than MPI."""
    from torch import distributed

    return is_initialized() and distributed.get_backend() != BACKEND


def is_made_for(ours: Communicator) -> bool:
    """True if there is such a group already, and it is of the ranks of this communicator."""
    return is_there() and _is_of_group(ours)


def texts_of_all(ours: Communicator | None, text: str, purpose: str) -> list[str]:
    """The texts of all ranks, by their process group, or by MPI as long as there is none."""
    if ours is not None and not is_made_for(ours):
        return ours.gather(text, purpose=purpose)
    return gather(text, require_group(purpose), purpose)


def gather(text: str, group: Any, purpose: str) -> list[str]:
    """The texts of all ranks of a group, which must all call this; PYTHON if one does not come."""
    from torch import distributed

    texts: list[Any] = [None] * group.size()
    with exchange(purpose):
        distributed.all_gather_object(texts, text, group)
    return texts


@contextlib.contextmanager
def exchange(purpose: str) -> Iterator[None]:
    """An operation of all ranks of a group: PYTHON with what is likely where torch tells of its connections only, and
    DEVICE for ranks that share a GPU."""
    try:
        yield
    except RuntimeError as failure:
        if "Duplicate GPU" in str(failure):
            raise FtnPytorchError(
                "DEVICE",
                f"{purpose}: two ranks use the same GPU, and NCCL refuses that. Name it device='cuda:local' in load "
                "and in ftn_pytorch_init, so that each rank of a node has its own; train on the host where a node has "
                "more ranks than GPUs",
            ) from failure
        raise FtnPytorchError(
            "PYTHON",
            f"{purpose} has not reached the other ranks ({summary(failure)}). As a rule one of them has failed or "
            "ended before, or did not come within the time limit of init_process_group: look for its error",
        ) from failure


def wait_for(event: Any, purpose: str) -> None:
    """Until a device has come to ``event``. PYTHON where it waits longer for other ranks than ``init_process_group``
    was told: a rank that has ended never comes, and of a graph that waits for it torch knows nothing. NCCL can end
    neither that graph nor the group then, and a process that ends as usual waits for both."""
    limit = _made_for[0][1] if _made_for else communicator.TIMEOUT
    end, pause = time.monotonic() + limit, 0.0
    with exchange(purpose):
        while not event.query():
            if time.monotonic() > end:
                raise RuntimeError(f"the device has waited {limit:g} s for them")
            time.sleep(pause)
            pause = min(pause + 1e-6, 1e-3)


def _require_group_of(ours: Communicator | None) -> None:
    """ARGUMENT if the group of this process is of other ranks than the communicator, as far as can be told."""
    from torch import distributed

    if ours is not None and not _is_of_group(ours):
        raise FtnPytorchError(
            "ARGUMENT",
            f"{_NAME}: this process is rank {ours.rank} of {ours.size} in the communicator of this script, and has a "
            f"process group already, of other ranks, in which it is rank {distributed.get_rank()} of "
            f"{distributed.get_world_size()}. There is one such group in a process: load all modules that train over "
            "ranks with communicators of the same ranks",
        )


def _is_of_group(ours: Communicator) -> bool:
    if _made_for:
        return ours.has(_made_for[0][0])
    from torch import distributed

    return (distributed.get_rank(), distributed.get_world_size()) == (ours.rank, ours.size)


def _make_room_for_connections(ours: Communicator) -> None:
    """Raise the limit of open files to what connections to all ranks take; PYTHON if this user may not have so many.

    torch ends the process where they run out.
    """
    with contextlib.suppress(OSError):
        # Rank 0 is asked for addresses by all others, too.
        needed = len(os.listdir("/dev/fd")) + (2 if ours.rank == 0 else 1) * ours.size + _OTHER_FILES
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY or needed <= soft:
            return
        if needed > hard != resource.RLIM_INFINITY:
            raise FtnPytorchError(
                "PYTHON",
                f"{_NAME}: connections to {ours.size} rank(s) take {needed} open files, and this process may have "
                f"{hard}. Raise that limit before the program starts (ulimit -Hn), or train on fewer ranks",
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _store(ours: Communicator, limit: datetime.timedelta) -> Any:
    """Where the ranks tell each other their addresses: a server on a free port of rank 0."""
    from torch import distributed

    store, address, here = None, "", socket.gethostname()
    if ours.rank == 0:
        store = distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False, timeout=limit)
        address = f"{os.environ.get('MASTER_ADDR') or here} {store.port}"
    host, port = ours.gather(address, purpose=_NAME)[0].split()
    if store is not None:
        return store
    near = "localhost" if host == here else host
    return distributed.TCPStore(near, int(port), is_master=False, wait_for_workers=False, timeout=limit)


def _destroy() -> None:
    """When Python ends: threads of the group would meet a process in which everything is taken down."""
    from torch import distributed

    with contextlib.suppress(Exception):
        if _made_for and distributed.is_initialized():
            distributed.destroy_process_group()
