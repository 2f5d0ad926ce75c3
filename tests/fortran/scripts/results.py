# SPDX-License-Identifier: MIT
"""One function per form of result."""

import collections
import dataclasses

import torch

Point = collections.namedtuple("Point", "lon lat")


@dataclasses.dataclass
class Budget:
    flux: torch.Tensor
    residual: float
    closed: bool


def nothing():
    return None


def single():
    return torch.arange(6, dtype=torch.float64).reshape(2, 3)


def several(x):
    return x + 1, 2, 3.5, True, "four", 1 + 2j


def named():
    return {"flux": torch.ones(2, 3), "count": 12, "label": "köln", "mean": 0.25}


def dataclass():
    return Budget(torch.zeros(4), 1e-3, True)


def namedtuple():
    return Point(12.5, torch.tensor(50.0))


def large():
    return 2**40, 300, torch.tensor(2.0**-1074, dtype=torch.float64), torch.tensor(7, dtype=torch.int64)


def ftn_pytorch_forward(x):
    return {"double": 2 * x, "half": x / 2}
