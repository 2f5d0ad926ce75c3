# SPDX-License-Identifier: MIT
"""Rows of numbers for other ranks, and theirs for this one: one message to each neighbour.

By MPI_Ineighbor_alltoallv for host memory, after one of headers, otherwise by the process group. It is an operator of
torch, ``ftn_pytorch::exchange_rows``, so that a recording holds it as one operation.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import os
import weakref
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..errors import FtnPytorchError
from ..system import launcher
from ..system.tensor_bytes import bytes_of
from . import communicator, failed_calls, mpi, process_group
from .communicator import Communicator
from .node import NodeCommunicator

NAME = "ftn_pytorch::exchange_rows"
_WORD = 4


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
            kind = zlib.crc32(str(rows.dtype).encode()) >> 1  # a positive word
            self._by_mpi(parts, places, self._graph, (self.calls, int(back), kind, rows.shape[1]))
        else:
            self._by_group(parts, places)
        return result

    def _by_mpi(
        self, parts: dict[int, Any], places: dict[int, Any], graph: Communicator, header: tuple[int, ...]
    ) -> None:
        """Headers first: rows of another length than a rank waits for would be written beyond its memory."""
        import torch

        ranks = list(parts)  # in both directions the same
        kind = graph.kind_of_integers(self.purpose)
        mine = torch.tensor(header * len(ranks), dtype=torch.int32, device="cpu")
        theirs = torch.empty_like(mine)
        length = ctypes.c_int32(len(header))
        ways = [ctypes.c_void_p(mine.data_ptr()), length, kind, ctypes.c_void_p(theirs.data_ptr()), length, kind]
        graph.exchange("mpi_ineighbor_alltoall_", tuple(ways), self.purpose, (mine, theirs))
        found = dict(zip(ranks, map(tuple, theirs.reshape(len(ranks), len(header)).tolist())))
        # Nothing goes between ranks that are apart, which both know. The others are not left waiting.
        apart = [rank for rank in ranks if found[rank] != header]
        message = torch.cat([*(_words(rows) for rank, rows in parts.items() if rank not in apart), mine[:0]])
        answer = torch.empty(sum(_words_in(rows) for rows in places.values()), dtype=torch.int32, device="cpu")
        buffers = []
        for memory, rows_of in ((message, parts), (answer, places)):
            counts = [0 if rank in apart else _words_in(rows) for rank, rows in rows_of.items()]
            begins = [0, *itertools.accumulate(counts)][: len(counts)]
            integers = ctypes.c_int32 * max(len(counts), 1)
            buffers += [ctypes.c_void_p(memory.data_ptr()), integers(*counts), integers(*begins), kind]
        graph.exchange("mpi_ineighbor_alltoallv_", tuple(buffers), self.purpose, (message, answer))
        if apart:
            self._tell_apart(apart[0], found[apart[0]], header)
        for place, words in zip(places.values(), answer.split([_words_in(rows) for rows in places.values()])):
            place.copy_(_numbers_of(words, place))

    def _tell_apart(self, rank: int, theirs: tuple[int, ...], mine: tuple[int, ...]) -> None:
        if theirs[:2] != mine[:2]:
            ways = ["in backward" if each[1] else "forward" for each in (theirs, mine)]
            raise FtnPytorchError(
                "PYTHON",
                f"{self.purpose}: the ranks are in different calls of it: rank {rank} in number {theirs[0]}, "
                f"{ways[0]}, and rank {self.rank} in number {mine[0]}, {ways[1]}. {_ADVICE}",
            )
        raise FtnPytorchError(
            "FORMAT",
            f"{self.purpose}: rank {rank} gives {theirs[3]} numbers for each cell and rank {self.rank} {mine[3]}, or "
            "the types differ. Fields have the same leading axes and the same type on all ranks",
        )

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
        name = _free_graphs(ours, self.purpose)
        others = [rank for rank in self.sent if rank != self.rank]
        assert others == [rank for rank in self.received if rank != self.rank], "the way back has the same neighbours"
        count, made, info = ctypes.c_int32(len(others)), ctypes.c_int32(), ctypes.c_int32()
        integers = ctypes.c_int32 * max(len(others), 1)
        ranks, weights = integers(*others), integers(*([1] * len(others)))
        mpi.call("mpi_info_create_", self.purpose, info)
        old, keeps_ranks = ctypes.c_int32(ours.handle), ctypes.c_int32(0)
        ways = (count, ranks, weights, count, ranks, weights)
        mpi.call("mpi_dist_graph_create_adjacent_", self.purpose, old, *ways, info, keeps_ranks, made)
        mpi.call("mpi_info_free_", self.purpose, info)
        graph = Communicator(made.value)
        graph.timeout = ours.timeout
        weakref.finalize(graph, _left.__setitem__, name, (graph.handle, graph.size)).atexit = False
        return graph


def _free_graphs(ours: Communicator, purpose: str) -> str:
    """Free those that none of their ranks uses any more: that is collective, and when an object goes is not.

    Returns a name for the next one, the same on all ranks.
    """
    texts = ours.gather(json.dumps([os.urandom(8).hex(), *_left]), purpose=purpose)
    names = [json.loads(text) for text in texts]
    left_by = Counter(name for _, *left in names for name in left)
    for name in sorted(_left.keys() & left_by.keys()):
        if left_by[name] == _left[name][1]:
            mpi.call("mpi_comm_free_", purpose, ctypes.c_int32(_left.pop(name)[0]))
    return names[0][0]


_ADVICE = f"{communicator.APART} End all ranks, and go on from a checkpoint"
_numbers = itertools.count()
_all: weakref.WeakValueDictionary[int, Neighbours] = weakref.WeakValueDictionary()
# Graphs without an owner: handle and number of ranks by the name that all their ranks know.
_left: dict[str, tuple[int, int]] = {}


def own_rank(ours: Communicator | None) -> int:
    """Of this process among those that exchange."""
    if ours is not None:
        return ours.rank
    from torch import distributed

    return distributed.get_rank() if process_group.is_initialized() else 0


def usable_communicator(purpose: str) -> Communicator | None:
    """That of the script, None where a process group or nobody else is there.

    ARGUMENT in a process that works for a rank, and in a job of several ranks without communicator and process group.
    """
    ours = communicator.current()
    if isinstance(ours, NodeCommunicator):
        raise FtnPytorchError(
            "ARGUMENT", f'{purpose}: a worker of load(..., per="node") is no rank of MPI: load without per='
        )
    if ours is None and not process_group.is_initialized() and launcher.launched_rank_and_size()[1] > 1:
        process_group.require_group(purpose)
    return ours


def texts_of_all(ours: Communicator | None, text: str, purpose: str) -> list[str]:
    """Of all ranks, in their order; all of them call it."""
    if ours is not None:
        return ours.gather(text, purpose=purpose)
    if process_group.is_initialized():
        return process_group.gather(text, process_group.require_group(purpose), purpose)
    return [text]


def _words_in(rows: Any) -> int:
    return -(-rows.numel() * rows.element_size() // _WORD)


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

    torch.library.define(NAME, "(Tensor rows, int neighbours, bool back) -> Tensor")
    torch.library.impl(NAME, "default", lambda rows, number, back: _of_number(number).run(rows.contiguous(), back))
    return torch.ops.ftn_pytorch.exchange_rows.default


def _of_number(number: int) -> Neighbours:
    found = _all.get(number)
    if found is None:
        raise FtnPytorchError("PYTHON", f"{NAME}: the Exchange of this call is gone: keep it as long as what calls it")
    return found
