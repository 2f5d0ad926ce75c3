# SPDX-License-Identifier: MIT
"""Work on torch's current stream, and which one that is."""

import warnings

import torch


def ftn_pytorch_forward(x):
    return 2 * x + 1


def long_work(x):
    """2 x, 50 ms after it was asked for (at 2 GHz)."""
    torch.cuda._sleep(100_000_000)
    return 2 * x


class Long(torch.nn.Module):
    """2 x, after products of matrices that leave it as it is: much work, and put on the stream at once."""

    def forward(self, x):
        rows = x.reshape(-1, 256)
        mean = torch.full([256, 256], 1 / 256, device=x.device)
        for _ in range(300):
            rows = torch.mm(rows, mean)
        return 2 * rows.reshape(-1)


def save_long():
    """A TorchScript file in the working directory, for arrays of equal numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(Long()).save("long.pt")


def current():
    return torch.cuda.current_stream().cuda_stream


def done():
    return torch.cuda.current_stream().query()
