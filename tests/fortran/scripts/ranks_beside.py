# SPDX-License-Identifier: MIT
"""One network over several ranks, trained beside the program."""

import torch

import ftn_pytorch
from ftn_pytorch.kit import Background

torch.manual_seed(0)
net = torch.nn.Linear(3, 1).double()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def ftn_pytorch_setup(joins=True):
    if joins:
        ftn_pytorch.init_process_group(timeout=60)


def step(x):
    optimizer.zero_grad()
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    ftn_pytorch.average_gradients(net)
    optimizer.step()
    ftn_pytorch.require_equal(net)
    return loss.detach()


background = Background(step, net)


def ftn_pytorch_train(x, target):
    return background.submit(x)


def finish():
    background.flush()
    return torch.tensor([float(background.steps), float(background.published.weight[0, 0])], dtype=torch.float64)
