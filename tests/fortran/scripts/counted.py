# SPDX-License-Identifier: MIT
"""How often it was called, as long as the input."""

import torch

calls = 0


def ftn_pytorch_forward(x):
    global calls
    calls += 1
    return torch.full_like(x, calls)
