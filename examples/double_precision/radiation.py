# SPDX-License-Identifier: MIT
"""A network in single precision, as networks are: heating rates of an atmospheric column from its temperatures.

It is not trained. What matters here is the way of the numbers.
"""

import torch

torch.set_num_threads(1)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(30, 64), torch.nn.Tanh(), torch.nn.Linear(64, 30))


@torch.inference_mode()
def ftn_pytorch_forward(t):
    """Heating rates, (column, level), of temperatures in K."""
    return net((t - 250) / 50)


def precision_of(t):
    """What arrives here, as a text."""
    return str(t.dtype)


def column_means(t):
    """Sums of many numbers are better taken in double precision."""
    return t.double().mean(dim=1)
