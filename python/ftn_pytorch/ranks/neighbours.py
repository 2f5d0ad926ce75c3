# SPDX-License-Identifier: MIT
"""Rows of numbers for other ranks, and theirs for this one: one message to each neighbour.

By MPI_Ineighbor_alltoallv for host memory, otherwise by the process group. It is an operator of torch,
``ftn_pytorch::exchange_rows``, so that a recording holds it as one operation.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import time
from collections.abc import Mapping
from typing import Any

from ..errors import FtnPytorchError
from ..system import launcher
from ..system.tensor_bytes import bytes_of
from . import communicator, failed_calls, process_group
from .communicator import Communicator
from .node import NodeCommunicator

NAME = "ftn_pytorch::exchange_rows"
_WORD = 4
# Words before the rows of a message: how often the sender has called.
_HEADER = 1


class Neighbours:
    """Which rows go to which ranks. All ranks make it, in the same order, as all of them call ``exchange``.

    sent, received: number of rows by rank, which the other ranks must have as the opposite. The rows of an exchange lie
    in the order of the ranks. Those for this rank itself go nowhere. purpose: what errors call it.
    """

    def __init__(self, ours: Communicator | None, sent: Mapping[int, int], received: Mapping[int, int], purpose: str):
        self.ours, self.purpose, self.calls = ours, purpose, 0
        self.sent, self.received = (dict(sorted(each.items())) for each in (sent, received))
        self.rank = own_rank(ours)
        # What it begins with stays, as a recording has it.
        by_mpi = ours is not None and ours.size > 1 and not process_group.is_made_for(ours)
        self._graph = self._graph_of(ours) if ours is not None and by_mpi else None
        self.number = next(_numbers)
        _all[self.number] = self

    def exchange(self, rows: Any, back: bool = False) -> Any:
        """The rows that are received, (rows, columns), for those that are sent, as an operator of torch.

        back: the other way round, from those that receive to those that send. PYTHON if a rank does not come, or is in
        another call. The number of columns is the same on all ranks.
        """
        failed_calls.averaged(self)
        return operator()(rows, self.number, back)

    def messages(self) -> tuple[int, int]:
        """How many messages this rank sends in a call, and how many rows they have."""
        others = [count for rank, count in self.sent.items() if rank != self.rank]
        return len(others), sum(others)

    def position(self) -> int:
        return self.calls

    def is_at(self, position: int) -> bool:
        return self.calls == position

    def count(self) -> None:
        self.calls += 1

    def run(self, rows: Any, back: bool) -> Any:
        """What the operator does. rows: (rows, columns), contiguous."""
        self.calls += 1
        sent, received = (self.received, self.sent) if back else (self.sent, self.received)
        parts = dict(zip(sent, rows.split(list(sent.values()))))
        result = rows.new_empty(sum(received.values()), rows.shape[1])
        places = dict(zip(received, result.split(list(received.values()))))
        if self.rank in parts:
            places.pop(self.rank).copy_(parts.pop(self.rank))
        if not parts and not places:
            return result
        if rows.is_cpu and self._graph is not None:
            self._by_mpi(parts, places, self._graph)
        else:
            self._by_group(parts, places)
        return result

    def _by_mpi(self, parts: dict[int, Any], places: dict[int, Any], graph: Communicator) -> None:
        import torch

        given, taken = ([_words(each) for each in rows.values()] for rows in (parts, places))
        header = torch.tensor([self.calls], dtype=torch.int32)
        message = torch.cat([piece for rows in given for piece in (header, rows)])
        answer = torch.empty(sum(len(rows) + _HEADER for rows in taken), dtype=torch.int32)
        kind = graph.kind_of_integers(self.purpose)
        buffers = []
        for memory, pieces in ((message, given), (answer, taken)):
            counts = [len(rows) + _HEADER for rows in pieces]
            begins = [0, *itertools.accumulate(counts)][: len(counts)]
            integers = ctypes.c_int32 * max(len(counts), 1)
            buffers += [ctypes.c_void_p(memory.data_ptr()), integers(*counts), integers(*begins), kind]
        end = time.monotonic() + graph.timeout
        graph.exchange("mpi_ineighbor_alltoallv_", tuple(buffers), self.purpose, end, (message, answer))
        for (rank, place), rows in zip(places.items(), answer.split([len(rows) + _HEADER for rows in taken])):
            if int(rows[0]) != self.calls:
                raise FtnPytorchError(
                    "PYTHON",
                    f"{self.purpose}: the ranks are in different calls of it: rank {rank} in number {int(rows[0])}, "
                    f"and rank {self.rank} in number {self.calls}. {_ADVICE}",
                )
            place.copy_(_numbers_of(rows[_HEADER:], place))

    def _by_group(self, parts: dict[int, Any], places: dict[int, Any]) -> None:
        from torch import distributed

        group = process_group.require_group(self.purpose)
        operations = [distributed.P2POp(distributed.irecv, place, rank, group) for rank, place in places.items()]
        operations += [distributed.P2POp(distributed.isend, rows, rank, group) for rank, rows in parts.items()]
        with process_group.exchange(self.purpose):
            for work in distributed.batch_isend_irecv(operations):
                work.wait()

    def _graph_of(self, ours: Communicator) -> Communicator:
        """A communicator that knows who speaks to whom: what MPI needs to be told once. All ranks call it."""
        others = [rank for rank in self.sent if rank != self.rank]
        assert others == [rank for rank in self.received if rank != self.rank], "the way back has the same neighbours"
        count, made, info = ctypes.c_int32(len(others)), ctypes.c_int32(), ctypes.c_int32()
        integers = ctypes.c_int32 * max(len(others), 1)
        ranks, weights = integers(*others), integers(*([1] * len(others)))
        communicator.call("mpi_info_create_", self.purpose, info)
        old, keeps_ranks = ctypes.c_int32(ours.handle), ctypes.c_int32(0)
        ways = (count, ranks, weights, count, ranks, weights)
        communicator.call("mpi_dist_graph_create_adjacent_", self.purpose, old, *ways, info, keeps_ranks, made)
        communicator.call("mpi_info_free_", self.purpose, info)
        graph = Communicator(made.value)
        graph.timeout = ours.timeout
        return graph


_ADVICE = (
    "As a rule an error was passed over on a rank (stat=) before it came here, or the ranks took other ways through "
    "the program. End all ranks, and go on from a checkpoint"
)
_numbers = itertools.count()
_all: dict[int, Neighbours] = {}
_libraries: list[Any] = []


def own_rank(ours: Communicator | None) -> int:
    """Of this process among those that exchange."""
    if ours is not None:
        return ours.rank
    from torch import distributed

    return distributed.get_rank() if _is_in_group() else 0


def usable_communicator(purpose: str) -> Communicator | None:
    """That of the script, None where a process group or nobody else is there.

    ARGUMENT in a process that works for a rank, and in a job of several ranks without communicator and process group.
    """
    ours = communicator.of_one_group()
    if isinstance(ours, NodeCommunicator):
        raise FtnPytorchError(
            "ARGUMENT", f'{purpose}: a worker of load(..., per="node") is no rank of MPI: load without per='
        )
    if ours is None and not _is_in_group() and launcher.launched_rank_and_size()[1] > 1:
        process_group.require_group(purpose)
    return ours


def texts_of_all(ours: Communicator | None, text: str, purpose: str) -> list[str]:
    """Of all ranks, in their order; all of them call it."""
    if ours is not None:
        return ours.gather(text, purpose=purpose)
    if _is_in_group():
        return process_group.gather(text, process_group.require_group(purpose), purpose)
    return [text]


def _is_in_group() -> bool:
    from torch import distributed

    return distributed.is_available() and distributed.is_initialized()


def _words(rows: Any) -> Any:
    import torch

    flat = bytes_of(rows)
    if short := -len(flat) % _WORD:
        flat = torch.cat([flat, flat.new_zeros(short)])
    elif flat.storage_offset() % _WORD:
        flat = flat.clone()  # torch sees no words where the memory of a tensor has them in halves
    return flat.view(torch.int32)


def _numbers_of(words: Any, like: Any) -> Any:
    import torch

    size = like.numel() * like.element_size()
    return words.view(torch.uint8)[:size].clone().view(like.dtype).reshape(like.shape)


@functools.cache
def operator() -> Any:
    """``ftn_pytorch::exchange_rows(Tensor rows, int neighbours, bool back) -> Tensor``."""
    import torch

    library = torch.library.Library("ftn_pytorch", "FRAGMENT")
    library.define("exchange_rows(Tensor rows, int neighbours, bool back) -> Tensor")
    library.impl(
        "exchange_rows",
        lambda rows, number, back: _all[number].run(rows.contiguous(), back),
        "CompositeExplicitAutograd",
    )
    _libraries.append(library)  # what it defines goes with it
    return torch.ops.ftn_pytorch.exchange_rows.default
