# SPDX-License-Identifier: MIT
"""Learns in steps that wait for a file on request, and counts those that were made in this process."""

import os
import time

import torch

torch.manual_seed(0)
net = torch.nn.Linear(2, 1).double()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
made = torch.nn.Linear(1, 1, bias=False).requires_grad_(False)
steps, gate = 0, ""


def ftn_pytorch_setup(file=""):
    global gate
    gate = file


def ftn_pytorch_train(x, target):
    global steps
    if not torch.isfinite(x).all():
        raise ValueError("a sample is not finite")
    while gate and not os.path.exists(gate):
        time.sleep(0.01)
    steps += 1
    loss = (net(x) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    made.weight.fill_(steps)
    return steps >= 30, loss


@torch.no_grad()
def ftn_pytorch_forward(x):
    return net(x)


def trained_here():
    return steps


def published():
    """The steps after which the weights here were those of the training."""
    return int(made.weight)
