# SPDX-License-Identifier: MIT
"""Tensors that Fortran cannot make."""

import torch

ftn_pytorch_convention = "args"


def of_inference():
    with torch.inference_mode():
        return torch.ones(3, dtype=torch.float64)


def take_memory(x):
    x.untyped_storage().resize_(0)
