# SPDX-License-Identifier: MIT
"""The network. Everything else of the training is in the Fortran program."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)

net = torch.nn.Sequential(
    torch.nn.Linear(2, 32),
    torch.nn.Tanh(),
    torch.nn.Linear(32, 32),
    torch.nn.Tanh(),
    torch.nn.Linear(32, 1),
)


def ftn_pytorch_forward(x):
    """(samples, 2) to (samples, 1)."""
    return net(x)
