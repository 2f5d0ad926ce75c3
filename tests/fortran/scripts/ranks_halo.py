# SPDX-License-Identifier: MIT
"""Loaded on ranks of one communicator after the other: numbers of the neighbours, and the mean of all ranks."""

import torch

from ftn_pytorch import all_reduce_mean, world_size
from ftn_pytorch.halo import Exchange

torch.set_num_threads(1)


def ftn_pytorch_setup():
    global exchange
    exchange = Exchange((2, 3), 1, grid=(1, world_size()), boundary="periodic")


def ftn_pytorch_forward(x):
    padded = exchange(x.sum() + torch.zeros(2, 3, dtype=torch.float64))
    return torch.stack([padded[1, 0], padded[1, -1], all_reduce_mean(x.sum())])
