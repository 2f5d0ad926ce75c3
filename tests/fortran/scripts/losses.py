# SPDX-License-Identifier: MIT
"""Losses that a program with floating-point traps must survive, and arithmetic that would end it."""

import torch


def ftn_pytorch_train(x, target):
    return True, float(target[0])


def divide(x):
    """Invalid operations and divisions by zero, in torch and in its linear algebra."""
    zero = x * 0
    torch.linalg.solve(torch.eye(3) + 1e-30, torch.ones(3))
    torch.softmax(torch.full((4,), -float("inf")), 0)
    return torch.stack([zero / zero, x / zero, torch.log(zero)])


def fails(x):
    x / (x * 0)
    raise ValueError("after a division by zero")
