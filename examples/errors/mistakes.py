# SPDX-License-Identifier: MIT
"""One function that is right, and some of what can be wrong with the others."""

import torch

kept = []


def ftn_pytorch_setup(factor=2.0):
    global scale
    scale = float(factor)


def ftn_pytorch_forward(x):
    return scale * x


def ftn_pytorch_train(x, target):
    """Returns loss and flag, in the wrong order."""
    return torch.mean((x - target) ** 2), False


def root_of(x):
    return check(x).sqrt()


def check(x):
    lowest = x.min().item()
    if lowest < 0:
        raise ValueError(f"the lowest value is {lowest}, a root needs values from 0")
    return x


def a_set(x):
    return {x.sum(), x.mean()}


def two_results(x):
    return x + 1, x - 1


def named_results(x):
    return {"sum": x + x, "difference": x - x}


def double_precision(x):
    return x.double()


def one_column(x):
    return x[:, None]


def change_in_place(x):
    x.mul_(2)
    return x


def keep(x):
    """Keeps the array of the caller, which will hold other numbers tomorrow."""
    kept.append(x)
    return x
