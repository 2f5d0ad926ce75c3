# SPDX-License-Identifier: MIT
"""Loaded once for all ranks of a GPU: what reaches it of their calls."""

import os
import time

import torch

import ftn_pytorch

net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
with torch.no_grad():
    for i, parameter in enumerate(net.parameters()):
        parameter.copy_(torch.linspace(-1, 1, parameter.numel()).reshape(parameter.shape) * (i + 1) / 4)
os.environ["GPU_RANKS_LOADS"] = os.environ.get("GPU_RANKS_LOADS", "") + "x"
heights: list[int] = []
places: list[int] = []
copies: dict[int, list[torch.Tensor]] = {}
arrived: list[int] = []


def ftn_pytorch_setup(way="", factor=1.0):
    if way == "fail":
        raise ValueError("no good config")
    if way == "end":
        os._exit(3)


def ftn_pytorch_forward(x):
    return net(x[0] if isinstance(x, list) else x)


def learns():
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(-0.5)


def wait(seconds):
    """Calls that come within as long as this are made as one with those that follow."""
    time.sleep(seconds)
    return 0


def joined(x, *, scale, name):
    """Slow, so that all ranks are there when the next call begins."""
    time.sleep(0.1)
    heights.append(len(x))
    places.append(x.data_ptr())
    return (scale * len(name)) * x, x.sum(1, keepdim=True)


def largest():
    """Rows of the largest call, calls, and addresses of the last three."""
    return torch.tensor([max(heights), len(heights), len(set(places[-3:]))], dtype=torch.int32)


def columns(x):
    """For load(..., layout="same"), where the last axis is that of the ranks."""
    time.sleep(0.1)
    heights.append(x.shape[-1])
    return x * 2


def adds(x, out):
    time.sleep(0.1)
    out += x


def doubles(x):
    return 2 * x


def mixes(x):
    time.sleep(0.1)
    return x - x.mean(0)


def depends_back(x):
    time.sleep(0.05)
    return torch.cumsum(x, 0)


def depends_ahead(x):
    time.sleep(0.05)
    return x.flip(0).cumsum(0).flip(0)


def depends_place(x):
    time.sleep(0.05)
    return x + torch.arange(len(x), device=x.device)[:, None]


def depends_first(x):
    time.sleep(0.05)
    return x - x[:1]


def depends_last(x):
    time.sleep(0.05)
    return x - x[-1:]


def depends_wraps(x):
    """The neighbour, which only the rows at the ends of a rank have on another one."""
    time.sleep(0.05)
    return x - x.roll(1, 0)


def depends_load(x):
    """Each load of the script adds a letter to the environment, which stays."""
    time.sleep(0.05)
    return 2 * x if len(os.environ["GPU_RANKS_LOADS"]) == 1 else x - x.mean(0)


def needs_one(x):
    time.sleep(0.1)
    if len(x) == 2:
        raise ValueError("too few rows")
    return x


def fails(x):
    time.sleep(0.1)
    raise ValueError(f"no good: {x.shape[1]}")


def statistics(x, *, n):
    return {"sum": x.sum() + n, "x": 2 * x}


def in_place(x):
    x += 1


def first_copy(x):
    """Changes its copy and keeps it."""
    time.sleep(0.05)
    x += 1
    copies.setdefault(len(x), []).append(x)
    return copies[len(x)][0] + 0


def place():
    """Rank and size as the script sees them, the process, and where the network is."""
    device = next(net.parameters()).device
    return {"rank": ftn_pytorch.rank(), "size": ftn_pytorch.world_size(), "process": os.getpid(), "device": str(device)}


def arrive(number):
    """How many ranks have called this, by a number of 1, or were there when one looks, by 0."""
    arrived.extend([1] * number)
    return len(arrived)


def die():
    os._exit(3)
