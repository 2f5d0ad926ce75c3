# SPDX-License-Identifier: MIT
"""A network for the columns of a model. Every rank runs a Python of its own, which sees the columns of this rank."""

import torch

torch.manual_seed(0)  # the same network on all ranks
net = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 20))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


@torch.inference_mode()
def ftn_pytorch_forward(x):
    """One profile for each column, (column, level)."""
    bad = (~torch.isfinite(x)).any(dim=1).sum().item()
    if bad:
        raise ValueError(f"{bad} of {len(x)} columns hold values that are no numbers")
    return net(x)


def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss
