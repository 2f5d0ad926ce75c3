# SPDX-License-Identifier: MIT
"""One function for each kind of call, for the program growth."""

import torch

weight = torch.ones(16, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e-9)


def ftn_pytorch_forward(x, *_):
    return 2 * x[0] if isinstance(x, list) else 2 * x


def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = ((weight * x - target) ** 2).mean()
    loss.backward()
    optimizer.step()
    return False, loss


def nothing(x):
    pass


def takes_names(x, n, a, b):
    pass


def doubles(x):
    x[0] *= 2


def several(x):
    return {"sum": x + 1, "mean": x.mean(), "text": "a text that is longer than what fits into a small string"}


def fails(x):
    local = x + 1
    raise ValueError(f"of {len(local)} elements")
