# SPDX-License-Identifier: MIT
"""One network that all ranks train: the correction of a coarse flux, learnt while the model runs.

Every rank calls ``ftn_pytorch_train`` with the faces of its own cells. What must be the same on all ranks is made of
numbers of all of them: gradients, the statistics of the inputs, and the loss that the guard and the log see.
"""

import torch
from torch import distributed, nn

import ftn_pytorch
from ftn_pytorch.kit import Guard, Log, Normaliser

rank, ranks = ftn_pytorch.rank(), ftn_pytorch.world_size()

# The same on all ranks. The log is not among these: rank 0 alone has one.
ftn_pytorch_shared = ["network", "optimizer", "guard", "steps"]


class Correction(nn.Module):
    """(n, 2) differences to (n,) corrections; shift and scale of both are a part of it."""

    def __init__(self, width):
        super().__init__()
        self.scale, self.scale_target = Normaliser(2), Normaliser(())
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
    guard = Guard(network, optimizer)
    rows = Log(log if rank == 0 and log else None)
    settings = {"warm_up": warm_up}
    steps = 0
    if ranks > 1:
        ftn_pytorch.init_process_group()


@torch.inference_mode()
def ftn_pytorch_forward(d):
    return network.scale_target.denormalise(network(d))


def ftn_pytorch_train(d, target):
    global steps
    if steps < settings["warm_up"]:
        network.scale.update(some_of_all_ranks(d))
        network.scale_target.update(some_of_all_ranks(target))
    steps += 1
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(network(d), network.scale_target(target))
    loss_of_all = mean_of_all_ranks(loss.detach(), len(d))
    # The same number on all ranks, so all go on or none
    if guard.allows(loss_of_all):
        loss.backward()
        if ranks > 1:
            ftn_pytorch.average_gradients(network, samples=len(d))
        optimizer.step()
    rows.write(steps, loss=loss_of_all)
    return False, loss_of_all


def require_equal():
    if ranks > 1:
        ftn_pytorch.require_equal(network)


def some_of_all_ranks(x, number=256):
    """Every rank gets the same samples in the same order, and so the same statistics; some twice of who has few."""
    x = x[torch.arange(number) * max(1, len(x) // number) % len(x)]
    if ranks == 1:
        return x
    parts = [torch.empty_like(x) for _ in range(ranks)]
    distributed.all_gather(parts, x)
    return torch.cat(parts)


def mean_of_all_ranks(loss, samples):
    sums = torch.stack([loss.double() * samples, torch.tensor(float(samples), dtype=torch.float64)])
    if ranks > 1:
        distributed.all_reduce(sums)
    return sums[0] / sums[1]
