# SPDX-License-Identifier: MIT
"""The MPI of the program as a backend of torch.distributed: what is written for process groups runs over it.

So DistributedDataParallel, sharded networks and checkpoints of torch need no socket. An operation is done when it
returns. Tensors are summed in host memory. Imported where such a group is made: torch has the class that it extends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import distributed
from torch.distributed import ReduceOp

from ..errors import FtnPytorchError
from ..system import private_names
from ..system.tensor_bytes import bytes_of
from . import failed_calls, sums
from .communicator import Communicator
from .mpi import BACKEND

_OPERATIONS_OF_GROUP = -1
"""They are counted as averages of a network are, whose numbers begin with 1. A group counts on its communicator."""
_worlds: list[Communicator] = []


# Of each operation the form that torch itself calls.
_ProcessGroup: Any = distributed.ProcessGroup


class MpiGroup(_ProcessGroup):
    """The ranks of a communicator. All of them call each operation, in one order.

    Errors: PYTHON if a rank does not come, has ended, or is in another operation of those that sum; ARGUMENT in a
    thread of the script, for other kinds of reduction, and once the module that has the communicator is gone.
    """

    def __init__(self, ours: Communicator, world: Communicator, name: str) -> None:
        super().__init__(ours.rank, ours.size)
        self._ours, self._world, self._name = ours, world, name
        self._calls = sums.CallsOfMpi(ours, _OPERATIONS_OF_GROUP)

    def getBackendName(self) -> str:
        return BACKEND

    @property
    def group_name(self) -> str:
        return self._name

    pg_name = group_name

    def allreduce(self, tensors: Sequence[Any], opts: Any) -> Any:
        for each in tensors:
            each.copy_(self._reduced(each, opts.reduceOp, "all_reduce"))
        return _Done(tensors)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Sequence[Any], opts: Any) -> Any:
        for each in tensors:
            found = self._reduced(each, opts.reduceOp, "reduce")
            if self._ours.rank == opts.rootRank:
                each.copy_(found)
        return _Done(tensors)

    def reduce_scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any) -> Any:
        for output, parts in zip(outputs, inputs):
            self.reduce_scatter_single(output, torch.stack(list(parts)), opts)
        return _Done(outputs)

    def reduce_scatter_single(self, output: Any, given: Any, opts: Any) -> Any:
        """Each rank has all sums for a moment."""
        found = self._reduced(given, opts.reduceOp, "reduce_scatter").reshape(self._ours.size, -1)
        output.copy_(found[self._ours.rank].reshape(output.shape))
        return _Done([output])

    def reduce_scatter_single_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Any:
        for output, given in zip(outputs, inputs):
            self.reduce_scatter_single(output, given, opts)
        return _Done(outputs)

    def broadcast(self, tensors: Sequence[Any], opts: Any) -> Any:
        for each in tensors:
            self._usable("broadcast").broadcast_tensor(each, opts.rootRank, purpose="broadcast")
        return _Done(tensors)

    def allgather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any = None) -> Any:
        for parts, given in zip(outputs, inputs):
            for part, found in zip(parts, self._gathered(given, "all_gather")):
                part.copy_(found)
        return _Done([each for parts in outputs for each in parts])

    def all_gather_single(self, output: Any, given: Any, opts: Any = None) -> Any:
        output.copy_(torch.stack(self._gathered(given, "all_gather")).reshape(output.shape))
        return _Done([output])

    def all_gather_single_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any = None) -> Any:
        for output, given in zip(outputs, inputs):
            self.all_gather_single(output, given)
        return _Done(outputs)

    def gather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Any:
        """All ranks get what the root wants."""
        for number, given in enumerate(inputs):
            found = self._gathered(given, "gather")
            if self._ours.rank == opts.rootRank:
                for part, each in zip(outputs[number], found):
                    part.copy_(each)
        return _Done([each for parts in outputs for each in parts])

    def scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any) -> Any:
        """All ranks get what the root has."""
        for number, output in enumerate(outputs):
            everything = torch.empty((self._ours.size, *output.shape), dtype=output.dtype, device="cpu")
            if self._ours.rank == opts.rootRank:
                torch.stack(list(inputs[number]), out=everything)
            self._usable("scatter").broadcast_tensor(everything, opts.rootRank, purpose="scatter")
            output.copy_(everything[self._ours.rank])
        return _Done(outputs)

    def barrier(self, opts: Any = None) -> Any:
        self._combined(torch.zeros(1, device="cpu"), "sum", "barrier")
        return _Done([])

    def _usable(self, purpose: str) -> Communicator:
        """The program may have freed a communicator that no module has any more, and MPI would end it."""
        if self._world.is_held():
            return self._ours
        raise FtnPytorchError(
            "ARGUMENT",
            f"{purpose}: the process group is over the communicator of a module that is gone. Keep the module as long "
            "as torch.distributed is used",
        )

    def _reduced(self, tensor: Any, operation: Any, purpose: str) -> Any:
        """A new tensor in host memory."""
        name = next((name for kind, name in _OPERATIONS if operation == kind), None)
        if name is None or (name != "sum" and tensor.is_complex()):
            raise FtnPytorchError(
                "ARGUMENT",
                f"{purpose}: over the MPI of the program there are sums and averages, and the largest and smallest of "
                "real numbers, no other reductions",
            )
        sign = -1 if operation == ReduceOp.MIN else 1
        given = tensor.detach().cpu()
        if not (given.is_floating_point() or given.is_complex()):
            given = given.to(torch.int64)
        found = sign * self._combined(sums.real(sign * given), name, purpose)
        if operation == ReduceOp.AVG:
            found = found / self._ours.size
        if tensor.is_complex():
            return torch.view_as_complex(found.reshape(*tensor.shape, 2)).to(tensor.dtype)
        return found.reshape(tensor.shape).to(tensor.dtype)

    def _combined(self, flat: Any, operation: str, purpose: str) -> Any:
        self._usable(purpose)
        failed_calls.averaged(self._calls)
        return self._calls.combine(flat, operation, purpose)

    def _gathered(self, given: Any, purpose: str) -> list[Any]:
        """What all ranks have, in host memory. Shapes may differ."""
        data = bytes_of(given).cpu().numpy().tobytes()
        found = self._usable(purpose).gather_bytes(data, purpose=purpose)
        rows = [torch.frombuffer(bytearray(each), dtype=given.dtype) if each else given.new_empty(0) for each in found]
        return [row.reshape(given.shape) if row.numel() == given.numel() else row for row in rows]


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise FtnPytorchError(
            "ARGUMENT", f"{name}: the process group over the MPI of the program has no messages between two ranks"
        )

    return refuse


for _former, _name in {
    **private_names.FORMER_COLLECTIVES,
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
}.items():
    setattr(MpiGroup, _former, getattr(MpiGroup, _name))
for _name in ("alltoall", "alltoall_base", "all_to_all_single", "send", "recv", "recv_anysource"):
    setattr(MpiGroup, _name, _refused(_name))

_OPERATIONS = ((ReduceOp.SUM, "sum"), (ReduceOp.AVG, "sum"), (ReduceOp.MAX, "max"), (ReduceOp.MIN, "max"))


def store(ours: Communicator) -> Any:
    """For ``torch.distributed.init_process_group`` with this backend: the ranks need no place to find each other."""
    _worlds[:] = [ours]
    if BACKEND not in distributed.Backend.backend_list:
        distributed.Backend.register_backend(BACKEND, _made, extended_api=True, devices=["cpu"])
    return distributed.HashStore()


def _made(options: Any, _: Any) -> MpiGroup:
    """The group of all ranks, or of those that torch.distributed.new_group was given."""
    ranks, world = list(options.global_ranks_in_group), _worlds[0]
    return MpiGroup(world.part(ranks) if ranks else world, world, options.group_id)


class _Done(distributed.Work):
    """Of an operation that has ended when it returned."""

    def __init__(self, result: Sequence[Any]) -> None:
        super().__init__()
        self._future: Any = torch.futures.Future()
        self._future.set_result(list(result))

    def wait(self, timeout: Any = None) -> bool:
        return True

    def get_future(self) -> Any:
        return self._future

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True
