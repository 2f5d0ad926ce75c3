# SPDX-License-Identifier: MIT
"""One network on all ranks, which keep nothing of their own but random numbers."""

import torch

import ftn_pytorch
from ftn_pytorch import average_gradients

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
torch.manual_seed(1 + ftn_pytorch.rank())

ftn_pytorch_shared = ["net", "optimizer"]


def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    average_gradients(net)
    optimizer.step()
    return False, loss
