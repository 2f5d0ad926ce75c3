# SPDX-License-Identifier: MIT
"""Work on torch's current stream, and which one that is."""

import torch


def ftn_pytorch_forward(x):
    return 2 * x + 1


def long_work(x):
    """2 x, 50 ms after it was asked for (at 2 GHz)."""
    torch.cuda._sleep(100_000_000)
    return 2 * x


def current():
    return torch.cuda.current_stream().cuda_stream


def done():
    return torch.cuda.current_stream().query()
