# SPDX-License-Identifier: MIT
"""Functions whose tangents and adjoints a program asks for."""

import torch

torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)).double()


@torch.inference_mode()
def ftn_pytorch_forward(x):
    return net(x)


def product(x, y, scale, times):
    return {"scaled": x * y * scale, "total": x.sum() * times, "times": times}


def squares(x):
    return x**2


def out_of_sight(x):
    with torch.inference_mode():
        return net(x)


def rounded(x):
    return x.long()


def has_gradients():
    return any(parameter.grad is not None for parameter in net.parameters())
