# SPDX-License-Identifier: MIT
"""One network that all ranks train: the correction of a coarse flux, learnt while the model runs.

Every rank calls ``ftn_pytorch_train`` with the faces of its own cells. What must be the same on all ranks is made of
numbers of all of them: gradients, the statistics of the inputs, and the loss that the guard decides on.
"""

import torch
from torch import nn

import ftn_pytorch
from ftn_pytorch.kit import Guard, Log, Normaliser

# The same on all ranks
ftn_pytorch_shared = ["network", "optimizer", "guard", "steps"]


class Correction(nn.Module):
    """(n, 2) differences to (n,) corrections; shift and scale of both are a part of it."""

    def __init__(self, width):
        super().__init__()
        self.scale, self.scale_target = Normaliser(2, over_ranks=True), Normaliser((), over_ranks=True)
        self.layers = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1), nn.Flatten(0)
        )

    def forward(self, d):
        return self.layers(self.scale(d))


def ftn_pytorch_setup(width=32, lr=5e-3, warm_up=20, log=""):
    """``warm_up``: calls whose samples shift and scale are taken of. ``log``: a CSV file, written by rank 0."""
    global network, optimizer, guard, rows, settings, steps
    torch.manual_seed(0)  # the same network on all ranks
    network = Correction(width)
    optimizer = torch.optim.Adam(network.parameters(), lr=lr, fused=True)
    guard = Guard(network, optimizer, over_ranks=True)
    rows = Log(log or None, over_ranks=True)
    settings = {"warm_up": warm_up}
    steps = 0


@torch.inference_mode()
def ftn_pytorch_forward(d):
    return network.scale_target.denormalise(network(d))


def ftn_pytorch_train(d, target):
    global steps
    if steps < settings["warm_up"]:
        network.scale.update(d)
        network.scale_target.update(target)
    steps += 1
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(network(d), network.scale_target(target))
    # One decision on all ranks, so all go on or none
    if guard.allows(loss, samples=len(d)):
        loss.backward()
        ftn_pytorch.average_gradients(network, samples=len(d))
        optimizer.step()
    rows.write(steps, loss=guard.loss)
    return False, guard.loss


def require_equal():
    ftn_pytorch.require_equal(network)
