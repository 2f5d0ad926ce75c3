# SPDX-License-Identifier: MIT
"""learner.py with DistributedDataParallel: torch averages the gradients, over the MPI of the model.

Everything that is written for process groups of torch runs in this way.
"""

import torch
from learner import Correction
from torch import distributed, nn

import ftn_pytorch
from ftn_pytorch.kit import Log

ftn_pytorch.init_process_group("ftn_pytorch")

# The same on all ranks
ftn_pytorch_shared = ["network", "optimizer", "steps"]


def ftn_pytorch_setup(width=32, lr=5e-3, warm_up=20, log=""):
    """``warm_up``: calls whose samples shift and scale are taken of. ``log``: a CSV file, written by rank 0."""
    global network, parallel, optimizer, rows, settings, steps
    torch.manual_seed(0)
    network = Correction(width)
    parallel = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=lr, fused=True)
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
    # DistributedDataParallel takes the mean of the ranks, which should count by their samples
    samples = torch.tensor(float(len(d)))
    distributed.all_reduce(samples, distributed.ReduceOp.AVG)
    loss = nn.functional.mse_loss(parallel(d), network.scale_target(target)) * len(d) / samples
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss = ftn_pytorch.all_reduce_mean(loss.detach())
    rows.write(steps, loss=loss)
    return False, loss


def require_equal():
    ftn_pytorch.require_equal(network)
