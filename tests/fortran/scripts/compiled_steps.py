# SPDX-License-Identifier: MIT
"""A network that is trained and asked, and what tells how far the compiler is."""

import os
import time

import torch


def ftn_pytorch_setup():
    global net, optimizer
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)).double()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)


def ftn_pytorch_forward(x):
    return net(x).detach()


def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss


def is_compiled(functions):
    """After a while: whether there is code of that many functions."""
    time.sleep(0.2)
    folder = os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], f"ftn_pytorch_{os.getuid()}")
    return os.path.isdir(folder) and sum(name.endswith(".pt2") for name in os.listdir(folder)) >= functions
