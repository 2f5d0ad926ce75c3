# SPDX-License-Identifier: MIT
"""A model that goes on learning while NEMO runs, on all ranks together."""

from __future__ import annotations

import torch

from ftn_pytorch import average_gradients

torch.manual_seed(0)
net = torch.nn.Linear(2, 2).double()
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
ftn_pytorch_shared = ["net", "optimizer"]


def inferences(u, v, mask_u, mask_v):
    """Learns to turn the velocities around."""
    ocean = (mask_u * mask_v) > 0
    x = torch.stack([u[ocean], v[ocean]], -1)
    optimizer.zero_grad()
    (net(x) + x).square().mean().backward()
    average_gradients(net, samples=len(x))
    optimizer.step()
    with torch.no_grad():
        u_f, v_f = net(torch.stack([u, v], -1)).unbind(-1)
    return {"u_f": u_f * mask_u, "v_f": v_f * mask_v}
