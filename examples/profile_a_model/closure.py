# SPDX-License-Identifier: MIT
"""A small convolutional network that learns the reaction of two fields from their neighbourhood."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(2, 8, 3, padding=1, padding_mode="circular"),
    torch.nn.GELU(),
    torch.nn.Conv2d(8, 2, 3, padding=1, padding_mode="circular"),
)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


def ftn_pytorch_forward(fields):
    with torch.no_grad():
        return net(fields[None])[0]


def ftn_pytorch_train(fields, tendency):
    loss = torch.nn.functional.mse_loss(net(fields[None])[0], tendency)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return False, loss
