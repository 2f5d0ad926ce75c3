# SPDX-License-Identifier: MIT
"""A network that is trained and asked; counts how often Python ran a hook, where nobody who records looks."""

import itertools

import torch

executions = itertools.count()


def ftn_pytorch_setup():
    global net, optimizer
    torch.manual_seed(3)
    layers = [torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 2)]
    net = torch.nn.Sequential(*layers).double()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)


def ftn_pytorch_forward(x):
    next(executions)
    return net(x)


def ftn_pytorch_train(x, target):
    next(executions)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss


def executed():
    """Number of executions so far."""
    return executions.__reduce__()[1][0]


def seed(number):
    """Start the random numbers again."""
    torch.manual_seed(number)


def rate(value):
    """Another learning rate."""
    optimizer.param_groups[0]["lr"] = value
