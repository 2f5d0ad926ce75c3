# SPDX-License-Identifier: MIT
"""Functions that call procedures of the program."""

import torch

from ftn_pytorch import procedure

cube = procedure("cube")
weight = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64))
optimizer = torch.optim.SGD([weight], lr=0.02)


def ftn_pytorch_forward(x):
    return cube(x) * 2


def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(cube(weight * x), target)
    loss.backward()
    optimizer.step()
    return False, loss


def fits(x):
    return torch.autograd.gradcheck(cube, (x.clone().requires_grad_(),))


def call(name, x):
    return procedure(name)(x)


def gradient(name, x):
    x = x.clone().requires_grad_()
    procedure(name)(x).sum().backward()
    return x.grad


def hooked(x):
    y = 2 * x
    y.register_hook(refuse)
    return y


def refuse(gradient):
    raise ValueError("the hook of the script")


def halves(x):
    low, high = procedure("split")(x)
    return low - high


def of_a_number():
    return cube(2.0)
