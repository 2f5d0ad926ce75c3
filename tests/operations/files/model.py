# SPDX-License-Identifier: MIT
"""The model of the operations as a script; what is no hook can be in a recording, too."""

import torch
from torch import nn

from ftn_pytorch import recorded

net = optimizer = None


def ftn_pytorch_setup(width=8):
    global net, optimizer
    torch.manual_seed(0)
    if net is not None:  # a checkpoint has what the load has made
        return
    net = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, fused=True)


def ftn_pytorch_forward(x):
    return net(x)


def ftn_pytorch_train(x, target):
    if target.shape[0] != x.shape[0] or target.dtype != x.dtype:
        raise TypeError("the target is another one")
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss


@recorded
def pair(x):
    return x * 2, x.sum()


@recorded
def half(x):
    return x.half()


@recorded
def stats(x):
    return {"mean": x.mean(), "spread": x.std()}


@recorded
def shift(x):
    x.add_(1.0)
    return x.sum()


@recorded
def gather(x, y):
    x.add_(y)
    return x[0, 0] - x[1, 1]


@recorded
def above(x):
    return x[:, 0] > 0


@recorded
def turned(x):
    return torch.complex(x, -x)


@recorded
def transposed(x):
    return x[2, 1] - x[1, 2]
