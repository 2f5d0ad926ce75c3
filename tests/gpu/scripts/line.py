# SPDX-License-Identifier: MIT
"""One weight, trained by gradient descent with rate 0.1 on the mean squared error."""

import torch

net = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.zeros_(net.weight)


def ftn_pytorch_forward(x):
    return x * net.weight[0, 0]


def ftn_pytorch_train(x, target):
    loss = torch.nn.functional.mse_loss(ftn_pytorch_forward(x), target)
    net.zero_grad()
    loss.backward()
    with torch.no_grad():
        net.weight -= 0.1 * net.weight.grad
    return False, loss
