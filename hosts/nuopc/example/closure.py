# SPDX-License-Identifier: MIT
"""A component that learns the longwave flux of a surface from its temperature, on all ranks together."""

from __future__ import annotations

import torch

import ftn_pytorch
from ftn_pytorch import average_gradients

SIGMA = 5.67e-8  # W/m2/K4

torch.manual_seed(0)
net = torch.nn.Linear(1, 1).double()
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
ftn_pytorch_shared = ["net", "optimizer"]


def ftn_pytorch_nuopc():
    return ["import sst sea_surface_temperature", "export longwave surface_net_downward_longwave_flux"]


def flux(sst):
    """W/m2, of the network, for temperatures (K) of any shape."""
    return 100 * net(((sst - 288) / 10)[..., None])[..., 0]


def ftn_pytorch_advance(sst):
    optimizer.zero_grad()
    loss = ((flux(sst) + SIGMA * sst**4) / 100).square().mean()
    loss.backward()
    average_gradients(net, samples=sst.numel())
    optimizer.step()
    now = ftn_pytorch.host()
    text = f"{now['time']} {now['calendar']}, day {now['day_of_year']:.4f}: loss {loss.item():.2f}"
    print(f"{text}, weight {net.weight.item():.16f}", flush=True)
    with torch.no_grad():
        return {"longwave": flux(sst)}
