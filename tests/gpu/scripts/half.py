# SPDX-License-Identifier: MIT
"""A small network of one number, on the GPU."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).cuda()


def ftn_pytorch_forward(x):
    return net(x.reshape(-1, 1)).reshape(x.shape)
