# SPDX-License-Identifier: MIT
"""Tensors without a device are on the device "meta" from here on, as far as Python makes them."""

import torch

torch.set_default_device("meta")


def ftn_pytorch_forward(x):
    return x
