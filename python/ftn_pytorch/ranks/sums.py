# SPDX-License-Identifier: MIT
"""Sums, averages and largest numbers over the ranks of an MPI communicator, which the library makes (``MpiSum``).

An average is an operator of torch, ``ftn_pytorch::all_reduce_mean``, so that a recording holds it as one operation.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import TYPE_CHECKING, Any

from ..errors import FtnPytorchError
from . import communicator

if TYPE_CHECKING:
    from .communicator import Communicator

NAME = "ftn_pytorch::all_reduce_mean"
_AVERAGE = "average_gradients"
MEAN = "all_reduce_mean"
NO_NETWORK = 0
"""The number of what ``all_reduce_mean`` averages. Networks count from 1 on."""
# Those of ftn_pytorch.h
_TYPES = {"float32": 6, "float64": 7, "int64": 5}
_NARROW = ("float16", "bfloat16")


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
    total = flat.clone(memory_format=torch.contiguous_format)
    if ours.size > 1:
        kind = str(flat.dtype).removeprefix("torch.")
        if kind not in _TYPES:
            raise FtnPytorchError(
                "DTYPE", f"{purpose}: sums over ranks are made of real and complex numbers, not of {kind}"
            )
        ours.combine(total.data_ptr(), len(total), _TYPES[kind], operation, purpose, ours.calls[network], network)
    return total


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
