# SPDX-License-Identifier: MIT
"""A network with dropout that is trained and asked; a log counts how often Python ran a hook."""

import logging
import logging.handlers

import torch

executions = logging.handlers.BufferingHandler(1 << 20)
log = logging.Logger("executions", logging.INFO)  # no number depends on a log
log.addHandler(executions)


def ftn_pytorch_setup(tensor_rate=False):
    global net, optimizer
    torch.manual_seed(3)
    layers = [torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 2)]
    net = torch.nn.Sequential(*layers).to("cuda")
    rate = torch.tensor(1e-2, device="cuda") if tensor_rate else 1e-2
    optimizer = torch.optim.Adam(net.parameters(), lr=rate, fused=True)


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
    return len(executions.buffer)


def seed(number):
    torch.manual_seed(number)


def rate(value):
    group = optimizer.param_groups[0]
    if isinstance(group["lr"], torch.Tensor):
        group["lr"].fill_(value)
    else:
        group["lr"] = value
