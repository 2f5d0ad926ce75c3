# SPDX-License-Identifier: MIT
"""mpi4py beside the MPI of the program."""

import torch
from mpi4py import MPI


def ftn_pytorch_forward(x):
    world = MPI.COMM_WORLD
    total = torch.empty_like(x[0, 0])
    world.Allreduce(x[0, 0].numpy(), total.numpy())
    assert world.allreduce(world.rank + 1) == world.size * (world.size + 1) // 2
    return total / world.size
