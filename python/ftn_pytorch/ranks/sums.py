# SPDX-License-Identifier: MIT
"""Sums, averages and largest numbers over the ranks of an MPI communicator, by MPI_Iallreduce.

What averages send is what those of src/base/mpi_sum.cpp send.

An average is an operator of torch, ``ftn_pytorch::all_reduce_mean``, so that a recording holds it as one operation.
"""

from __future__ import annotations

import ctypes
import functools
import time
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import FtnPytorchError, listed
from ..system import installation, process
from . import communicator, mpi, processes
from .node import NodeCommunicator

if TYPE_CHECKING:
    from .communicator import Communicator

NAME = "ftn_pytorch::all_reduce_mean"
_AVERAGE = "average_gradients"
MEAN = "all_reduce_mean"
NO_NETWORK = 0
"""The number of what ``all_reduce_mean`` averages. Networks count from 1 on."""
PIECE_BYTES = 1 << 30
"""What is summed at a time, less than 2^31 numbers; the same on all ranks."""
# Counters of calls begin anew after so many, each of which is exact in all types that are averaged, bfloat16 among
# them; the counter of the next network is so far ahead.
TURN = 251
OFFSET = 97
# A counter has two digits, each of which is a one among zeros.
_BASE = 16
# Type of ftn_pytorch.h, bytes, subroutine that makes a type of MPI, and its arguments.
_TYPES = {
    "float32": (6, 4, "mpi_type_create_f90_real_", (6, 37)),
    "float64": (7, 8, "mpi_type_create_f90_real_", (15, 307)),
    "int64": (5, 8, "mpi_type_create_f90_integer_", (18,)),
}
_NARROW = ("float16", "bfloat16")
ADVICE = f"{communicator.APART} Nothing was averaged. End all ranks, and go on from a checkpoint"


def mean(ours: Communicator, x: Any, network: int) -> Any:
    """Averages of a tensor over the ranks, the same bits on all; PYTHON, on all of them, if they are in other calls.

    x: in host memory, real or complex. network: number of what is averaged; each has a counter of calls.
    """
    import torch

    purpose = MEAN if network == NO_NETWORK else _AVERAGE
    if ours.size == 1:
        ours.calls[network] += 1
        return x.clone(memory_format=torch.contiguous_format)
    averages = combined(ours, real(x), "sum", network, purpose) / ours.size
    if x.is_complex():
        return torch.view_as_complex(averages.reshape(*x.shape, 2))
    return averages.reshape(x.shape).to(x.dtype)


def combined(ours: Communicator, flat: Any, operation: str, network: int, purpose: str) -> Any:
    """Sums over the ranks ("sum"), or the largest numbers of them ("max", without NaN), and errors as of ``mean``.

    flat: one row of float32, float64 or int64 in host memory. purpose: what errors call this.
    """
    import torch

    ours.calls[network] += 1
    if ours.size == 1:
        return flat.clone()
    mine = (ours.calls[network] + OFFSET * network) % TURN
    given = torch.zeros(flat.numel() + 2 * _BASE, dtype=flat.dtype, device="cpu")
    given[: flat.numel()] = flat
    given[flat.numel() + mine % _BASE] = given[flat.numel() + _BASE + mine // _BASE] = 1
    if not ours.roll:
        roll = torch.zeros(ours.size, 2, dtype=torch.float64, device="cpu")
        roll[ours.rank] = torch.tensor(processes.here(), dtype=torch.float64, device="cpu")
        ours.roll = _reduced(ours, roll.reshape(-1), "sum", purpose).tolist()
    total = _reduced(ours, given, operation, purpose)
    # Of other ranks in other calls, some digit is a place that this one has left at zero.
    if int(total[flat.numel() :].count_nonzero()) != 2:
        # The sums are the same everywhere, so all ranks come here.
        there = torch.zeros(ours.size, dtype=torch.float64, device="cpu")
        there[ours.rank] = mine
        refuse(_reduced(ours, there, "sum", purpose).tolist(), mine, purpose)
    return total[: flat.numel()]


def refuse(calls: list[float], mine: float, purpose: str) -> NoReturn:
    """PYTHON, with who is elsewhere, by how many calls. calls: counters of all ranks; mine: that of this one."""
    off = [int(each - mine + TURN // 2) % TURN - TURN // 2 for each in calls]
    most = max(off, key=off.count)
    others = [(rank, each - most) for rank, each in enumerate(off) if each != most]
    told = [f"rank {rank} is {abs(n)} {'ahead of' if n > 0 else 'behind'} rank {off.index(most)}" for rank, n in others]
    raise FtnPytorchError("PYTHON", f"{purpose}: the ranks are in different calls of it: {listed(told)}. {ADVICE}")


class CallsOfMpi:
    """Counts averages of one network. The communicator counts by itself, outside of recordings."""

    def __init__(self, ours: Communicator, network: int) -> None:
        self._ours, self._network = weakref.ref(ours), network

    def position(self) -> int:
        ours = self._ours()
        return 0 if ours is None else ours.calls[self._network]

    def is_at(self, position: int) -> bool:
        return self.position() == position

    def count(self) -> None:
        ours = self._ours()
        if ours is not None:
            ours.calls[self._network] += 1

    def ours(self) -> Communicator | None:
        """None if its modules are gone."""
        ours = self._ours()
        return ours if ours is not None and ours.is_held() else None

    def combine(self, flat: Any, operation: str, purpose: str) -> Any:
        """See ``combined``."""
        ours = self._ours()
        assert ours is not None
        return combined(ours, flat, operation, self._network, purpose)

    def average(self, tensor: Any) -> Any:
        """As an operator of torch."""
        ours = self._ours()
        assert ours is not None
        return operator()(tensor, number_of(ours, self._network))


@functools.cache
def operator() -> Any:
    """``ftn_pytorch::all_reduce_mean(Tensor x, int communicator) -> Tensor``, for tensors in host memory.

    communicator: ``number_of``. A function of a script that calls it is recorded with it as one operation.
    """
    import torch

    torch.library.define(NAME, "(Tensor x, int communicator) -> Tensor")
    torch.library.impl(NAME, "cpu", lambda x, number: mean(_of_number(number), x, number >> 32))
    return torch.ops.ftn_pytorch.all_reduce_mean.default


def average_here(x: Any, number: int) -> Any:
    """The operator as a file has it: over the ranks of the communicator of this process. ARGUMENT without one."""
    ours = communicator.current()
    if ours is None:
        raise FtnPytorchError(
            "ARGUMENT", "it averages over ranks: give the communicator of the ranks to load (communicator=)"
        )
    return operator()(x, number_of(ours, number >> 32))


def number_of(ours: Communicator, network: int) -> int:
    """The communicator, and above its 32 bits the number of the network."""
    return network << 32 | ours.handle & 0xFFFFFFFF


_handles: dict[tuple[str, str], tuple[int, int]] = {}


def _of_number(number: int) -> Communicator:
    handle = ctypes.c_int32(number & 0xFFFFFFFF).value
    found = communicator.held(handle)
    assert found is not None, "a module that averages is loaded"
    communicator.require_at_work(found, MEAN if number >> 32 == NO_NETWORK else _AVERAGE)
    return found


def real(x: Any) -> Any:
    """All numbers of a tensor in one row, complex ones as pairs, narrow ones in single precision."""
    import torch

    plain = x.detach().resolve_conj().resolve_neg()
    if plain.is_complex():
        plain = torch.view_as_real(plain.contiguous())
    return (plain.float() if str(x.dtype).removeprefix("torch.") in _NARROW else plain).reshape(-1)


def _reduced(ours: Communicator, flat: Any, operation: str, purpose: str) -> Any:
    """In pieces. The numbers are the same bits on all ranks: MPI requires that (MPI 3.1, 5.9.6)."""
    import torch

    kind = str(flat.dtype).removeprefix("torch.")
    if kind not in _TYPES:
        raise FtnPytorchError(
            "DTYPE", f"{purpose}: sums over ranks are made of real and complex numbers, not of {kind}"
        )
    number, size, *_ = _TYPES[kind]
    if isinstance(ours, NodeCommunicator):
        total = flat.clone()
        ours.combine(total.data_ptr(), total.numel(), number, operation, purpose)
        return total
    end = time.monotonic() + ours.timeout
    total = torch.empty_like(flat)
    type_, handle = (ctypes.c_int32(each) for each in _type_and_operation(kind, operation, purpose))
    most = PIECE_BYTES // size
    for begin in range(0, flat.numel(), most):
        length = ctypes.c_int32(min(most, flat.numel() - begin))
        places = (ctypes.c_void_p(each.data_ptr() + begin * size) for each in (flat, total))
        ours.exchange("mpi_iallreduce_", (*places, length, type_, handle), purpose, end, (flat, total))
    return total


def _type_and_operation(kind: str, operation: str, purpose: str) -> tuple[int, int]:
    """Handles of MPI, made once. The operation is ours: that of MPI is a constant of each implementation."""
    if (kind, operation) not in _handles:
        number, _, maker, digits = _TYPES[kind]
        made, type_ = ctypes.c_int32(), ctypes.c_int32()
        mpi.call(maker, purpose, *map(ctypes.c_int32, digits), type_)
        address = ctypes.c_void_p(_function(number, operation, purpose))
        mpi.call("mpi_op_create_", purpose, address, ctypes.c_int32(1), made)
        _handles[kind, operation] = type_.value, made.value
    return _handles[kind, operation]


def _function(number: int, operation: str, purpose: str) -> int:
    """Address of the function of the library that adds numbers of a type of ftn_pytorch.h, or takes the larger one."""
    path = process.start_info().get("core") or installation.library()
    if not path:
        raise FtnPytorchError("ARGUMENT", f"{purpose}: the library of this package is not found (ftn_pytorch_ROOT)")
    find = getattr(ctypes.CDLL(path), f"fpt_mpi_{operation}")
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_int32]
    return find(number)
