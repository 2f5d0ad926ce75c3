# SPDX-License-Identifier: MIT
"""A network that is trained and asked; a log counts how often Python ran a hook, since no number depends on a log."""

import logging
import logging.handlers

import torch

executions = logging.handlers.BufferingHandler(1 << 20)
log = logging.Logger("executions", logging.INFO)  # not one that two instances of the script would share
log.addHandler(executions)


def ftn_pytorch_setup():
    global net, optimizer
    torch.manual_seed(3)
    layers = [torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 2)]
    net = torch.nn.Sequential(*layers).double()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)


def ftn_pytorch_forward(x):
    log.info("a hook")
    return net(x)


def ftn_pytorch_train(x, target):
    log.info("a hook")
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss


def executed():
    """Number of executions so far."""
    return len(executions.buffer)


def seed(number):
    """Start the random numbers again."""
    torch.manual_seed(number)


def rate(value):
    """Another learning rate."""
    optimizer.param_groups[0]["lr"] = value
