# SPDX-License-Identifier: MIT
"""The length scale of the subgrid closure of DALES, learnt while the model runs, by one network on all ranks."""

from __future__ import annotations

import torch
from torch import nn

from ftn_pytorch import average_gradients, rank
from ftn_pytorch.kit import Guard, Log, Normaliser, Replay

BATCH = 1024

torch.manual_seed(0)  # the same network on all ranks
normaliser = Normaliser(4, over_ranks=True)
net = nn.Sequential(
    normaliser, nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1), nn.Sigmoid()
)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
guard = Guard(net, optimizer, over_ranks=True)
replay = Replay(100_000, held_out=0.1)
log = Log("run/log.csv", over_ranks=True)
steps = 0

ftn_pytorch_shared = ["net", "optimizer", "guard", "steps"]


def features(e, dthvdz, thv, delta):
    """(k, j, i) root of the subgrid energy and stability, (k) temperature and width of the cells, as rows."""
    thv, delta = (column[:, None, None].expand_as(e) for column in (thv, delta))
    return torch.stack([e.log(), (1e4 * dthvdz).asinh(), thv, delta.log()], -1).reshape(-1, 4).float()


def ftn_pytorch_train(e, dthvdz, thv, delta, length):
    global steps
    steps += 1
    if steps == 1:
        torch.manual_seed(1 + rank())  # other samples on each rank
    x = features(e, dthvdz, thv, delta)
    y = (length / delta[:, None, None]).reshape(-1, 1).float()  # from 0 to 1
    rows = torch.randint(len(x), (BATCH,))
    normaliser.update(x[rows])
    replay.add(x[rows], y[rows])
    x, y = replay.sample(BATCH)
    loss = nn.functional.mse_loss(net(x), y)
    if guard.allows(loss):
        optimizer.zero_grad()
        loss.backward()
        average_gradients(net)
        optimizer.step()
    row = {"loss": guard.loss}
    if steps % 20 == 0:
        x, y = replay.held_out[:]
        with torch.no_grad():
            row["skill"] = 1 - nn.functional.mse_loss(net(x), y) / y.var()
    log.write(steps, **row)
    return False, guard.loss


@torch.no_grad()
def ftn_pytorch_forward(e, dthvdz, thv, delta):
    y = net(features(e, dthvdz, thv, delta)).reshape(e.shape)
    return delta[:, None, None] * y
