# SPDX-License-Identifier: MIT
"""The network of rank 0 on all ranks."""

from __future__ import annotations

from typing import Any

from ..errors import FtnPytorchError
from ..system import thread_recorder
from ..system.tensor_bytes import bytes_of
from . import communicator, equality, process_group

_NAME = "broadcast"


def broadcast(network: Any) -> None:
    """Give the parameters and buffers of rank 0 to all ranks, bit for bit. All ranks call it.

    FORMAT on all ranks, and nothing is changed, if names, types or shapes differ. ARGUMENT for parameters that have no
    shape yet, for sparse ones, and where there is neither a communicator nor a process group. PYTHON if a rank does
    not come; part of the network may be that of rank 0 then. A function that calls it is not recorded.

    network: a torch.nn.Module, or an iterable of tensors.
    """
    import torch

    thread_recorder.refuse(f"it calls ftn_pytorch.{_NAME}, which writes into the network what other ranks send")
    named = equality.named_tensors(network)
    for name, tensor in named.items():
        if torch.nn.parameter.is_lazy(tensor) or tensor.layout is not torch.strided:
            why = "has no shape before the first forward" if torch.nn.parameter.is_lazy(tensor) else "is sparse"
            raise FtnPytorchError("ARGUMENT", f"{_NAME}: {name} {why}")
    equality.compare(
        {name: f"{tensor.dtype} {tuple(tensor.shape)}" for name, tensor in named.items()},
        lambda text: equality.gathered(text, _NAME),
        f"{_NAME}: the ranks do not have networks of one form",
        "Make the same network on all ranks",
    )
    ours = communicator.current()
    by_mpi = ours is not None and not process_group.is_made_for(ours)
    with torch.no_grad():
        for tensor in named.values():
            if by_mpi and ours is not None:
                ours.broadcast_tensor(tensor, 0, purpose=_NAME)
            else:
                with process_group.exchange(_NAME):
                    _by_group(tensor)


def _by_group(tensor: Any) -> None:
    """As bytes, which all groups send."""
    from torch import distributed

    there = bytes_of(tensor).clone()
    distributed.broadcast(there, 0, group=process_group.require_group(_NAME))
    if len(there):
        tensor.copy_(there.view(tensor.dtype).reshape(tensor.shape))
