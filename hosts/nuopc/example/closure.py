# SPDX-License-Identifier: MIT
"""A component that learns to double a field of another component, on all ranks together."""

from __future__ import annotations

import torch

import ftn_pytorch
from ftn_pytorch import average_gradients

torch.manual_seed(0)
net = torch.nn.Linear(1, 1).double()
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
ftn_pytorch_shared = ["net", "optimizer"]


def ftn_pytorch_nuopc():
    return ["import x quantity_x", "export y quantity_y"]


def ftn_pytorch_advance(x):
    cells = x.reshape(-1, 1)
    optimizer.zero_grad()
    loss = (net(cells) - 2 * cells).square().mean()
    loss.backward()
    average_gradients(net, samples=len(cells))
    optimizer.step()
    now = ftn_pytorch.host()
    text = f"{now['time']} {now['calendar']}, day {now['day_of_year']:.4f}: loss {loss.item():.2f}"
    print(f"{text}, weight {net.weight.item():.16f}", flush=True)
    with torch.no_grad():
        return {"y": net(x[..., None])[..., 0]}
