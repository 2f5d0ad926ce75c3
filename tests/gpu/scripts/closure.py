# SPDX-License-Identifier: MIT
"""A step without random numbers, whose file goes from the GPU to the host and back."""

import torch


def ftn_pytorch_setup(where="cuda"):
    global net, optimizer
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)).to(where)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)


def ftn_pytorch_forward(x):
    return net(x)


def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss


def set_rate(rate):
    optimizer.param_groups[0]["lr"] = rate
