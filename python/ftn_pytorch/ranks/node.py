# SPDX-License-Identifier: MIT
"""One process loads for all ranks of a node, and forks a worker for each of them: ``load(..., per="node")``.

No worker is a rank of MPI. Where a script meets other ranks, the program makes the sums, which waits for the worker.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.abc
import itertools
import os
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import FtnPytorchError
from ..system import host_values, launcher, process
from . import communicator
from .communicator import Communicator

_LOAD = 'load(..., per="node")'
_INT64 = 5  # of ftn_pytorch.h
_WORD = 8
_FOREIGN = ("mpi4py.MPI", "horovod.torch")


class NodeCommunicator(Communicator):
    """The communicator of a script that was loaded for a node. ``rank`` is known when a worker was forked for it."""

    def __init__(self, handle: int, size: int) -> None:
        self._start(handle)
        self.size = size
        self._rank: int | None = None

    @property
    def rank(self) -> int:  # type: ignore[override]
        """ARGUMENT while the script is loaded."""
        if self._rank is None:
            raise FtnPytorchError(
                "ARGUMENT",
                f"{_LOAD} runs the script once for all ranks of a node, so there is no rank while it is loaded: "
                "ask for it in a function that the program calls later",
            )
        return self._rank

    def is_usable(self) -> bool:
        """The program knows."""
        return True

    @property
    def is_ranked(self) -> bool:
        return self._rank is not None

    def become(self, rank: int) -> None:
        self._rank = rank

    def group(self) -> int:
        raise FtnPytorchError(
            "ARGUMENT", f"init_process_group: a worker of {_LOAD} is no rank of MPI; average_gradients needs no group"
        )

    def collect(self, data: bytes, root: int, *, purpose: str) -> list[bytes]:
        """As ``Communicator.collect``, but the data of all ranks goes to all of them."""
        roots = _words(self.size)
        roots[self.rank] = root
        self._sum(roots, purpose)
        everything = self.gather_bytes(data, purpose=purpose)
        return [data for data, of in zip(everything, roots) if of == self.rank] or [b""]

    def gather_bytes(self, data: bytes, *, purpose: str) -> list[bytes]:
        lengths = _words(self.size)
        lengths[self.rank] = len(data)
        self._sum(lengths, purpose)
        begins = [0, *itertools.accumulate(-(-length // _WORD) for length in lengths)]
        words = _words(begins[-1])
        ctypes.memmove(ctypes.addressof(words) + _WORD * begins[self.rank], data, len(data))
        self._sum(words, purpose)
        everything = bytes(memoryview(words).cast("B"))
        return [everything[_WORD * begin : _WORD * begin + length] for begin, length in zip(begins, lengths)]

    def share_memory(self, address: ctypes.c_void_p, words: int, root: int, purpose: str, kept: Any) -> None:
        """Bits of one rank and zeros of the others add up to those bits."""
        moved = _words(-(-words // 2))
        if self.rank == root:
            ctypes.memmove(moved, address, 4 * words)
        self._sum(moved, purpose)
        ctypes.memmove(address, moved, 4 * words)

    def combine(
        self, address: int, count: int, dtype: int, operation: str, purpose: str, call: int = 0, network: int = 0
    ) -> None:
        communicator.refuse_threads(purpose)
        process.host().combine_over_ranks(purpose, address, count, dtype, operation == "max", call, network)

    def _sum(self, words: Any, purpose: str) -> None:
        if len(words):
            self.combine(ctypes.addressof(words), len(words), _INT64, "sum", purpose)


def _words(count: int) -> Any:
    return (ctypes.c_int64 * count)()


class _NoMpi(importlib.abc.MetaPathFinder):
    """Whoever imports an MPI of its own would take part in the job of the program."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname in _FOREIGN:
            raise ImportError(
                f"{_LOAD} runs the script in a process that is no rank of MPI, which cannot import {fullname}: "
                "use all_reduce_mean or average_gradients of ftn_pytorch, or load without per="
            )


_ours: list[NodeCommunicator] = []


def join_node(handle: int, size: int) -> None:
    """Before the script is loaded; ``handle`` is that of the communicator, by which ``load`` finds it here."""
    _ours.append(NodeCommunicator(handle, size))
    communicator.know(_ours[0])
    host_values.is_elsewhere(f"with {_LOAD} the script runs in another process than the program")
    sys.meta_path.insert(0, _NoMpi())


def prepare_fork() -> None:
    """Objects that are there now stay where they are in memory, so that workers share it. ARGUMENT for a GPU in use."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise FtnPytorchError("ARGUMENT", f"{_LOAD} cannot fork a process that uses a GPU, as the script does")
    if "numpy" in sys.modules:
        from ..system import openblas

        openblas.set_threads(1)

    gc.collect()
    gc.freeze()


def fork() -> int:
    """As ``os.fork``. Numbers of ``random`` go on as the script has seeded them: Python draws a seed in each child."""
    random = sys.modules.get("random")
    state = None if random is None else random.getstate()
    child = os.fork()
    if child == 0 and random is not None:
        random.setstate(state)
    return child


def become_worker(variables: Sequence[str], rank: int, threads: int, parent: int) -> None:
    """In a process that was forked for a rank.

    variables: of the rank, "NAME=value". threads: that the program has asked for, 0 for none. parent: of the rank.
    """
    wanted = dict(each.split("=", 1) for each in variables if "=" in each[1:])
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)
    launcher.of_parent(parent)
    for each in _ours:
        each.become(rank)
    process.restart_threads(threads)
