# SPDX-License-Identifier: MIT
"""A network that ICON trains while it runs. What it predicts is a new tracer of ICON, qnn.

It knows nothing of Fortran, MPI or ComIn. In place of physics it learns a function of latitude and temperature.
"""

import torch

import ftn_pytorch
from ftn_pytorch import average_gradients, rank, require_equal, world_size

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
ftn_pytorch_shared = ["net", "optimizer"]

here = ftn_pytorch.host()
owned = torch.from_numpy(here["owned"])  # (blocks, cells)
place = torch.stack([torch.from_numpy(here["clon"]), torch.from_numpy(here["clat"])], -1).float()
losses = []


def ftn_pytorch_comin():
    return [
        "add qnn tracer units=1",
        "EP_ATM_PHYSICS_BEFORE learn temp",
        "EP_ATM_WRITE_OUTPUT_BEFORE apply temp > qnn",
    ]


def features(temp):  # (blocks, levels, cells)
    return torch.cat([place, temp.mean(1)[..., None].float() / 50 - 1], -1)


def learn(temp):
    x = features(temp)[owned]
    target = torch.sin(3 * x[:, :1]) + x[:, 2:]
    for _ in range(200):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), target)
        loss.backward()
        average_gradients(net, samples=len(x))
        optimizer.step()
    losses.append(loss.item())
    print(f"{ftn_pytorch.host()['time']}: rank {rank()} of {world_size()}, {len(x)} cells, loss {losses[-1]:.2e}")


@torch.no_grad()
def apply(temp):
    return net(features(temp))[..., 0][:, None].double().expand_as(temp)


def ftn_pytorch_end():
    require_equal(net)
    weights = sum(parameter.double().sum() for parameter in net.parameters()).item()
    print(f"rank {rank()}: losses of {len(losses)} steps, sum of weights {weights:.12f}", flush=True)
