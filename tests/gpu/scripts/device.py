# SPDX-License-Identifier: MIT
"""Tells where its arrays are, and computes what Fortran can compute exactly."""

import warnings

import torch


def ftn_pytorch_forward(x):
    return 2 * x + 1


def where(x):
    return x.is_cuda, x.data_ptr()


def index(x):
    return x.device.index


numbers = {}


def numbers_on(gpu, n):
    """The address of 1, 2, ..., n on a GPU."""
    numbers[gpu] = torch.arange(1, n + 1, dtype=torch.float32, device=f"cuda:{gpu}")
    torch.cuda.synchronize(gpu)
    return numbers[gpu].data_ptr()


def read_on(gpu):
    return numbers[gpu].cpu()


def named(x):
    return {"half": x / 2, "total": x.sum()}


def add(x, y):
    return x + y


def triple(x):
    x.mul_(3)


class Affine(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1


def save_affine(file="affine.pt"):
    """A TorchScript file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(Affine()).save(file)
