# SPDX-License-Identifier: MIT
"""Tells where its arrays are, and computes what Fortran can compute exactly."""

import warnings

import torch


def ftn_pytorch_forward(x):
    return 2 * x + 1


def where(x):
    return x.is_cuda, x.data_ptr()


def named(x):
    return {"half": x / 2, "total": x.sum()}


def add(x, y):
    return x + y


def triple(x):
    x.mul_(3)


class Affine(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1


def save_affine():
    """A TorchScript file in the working directory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(Affine()).save("affine.pt")
