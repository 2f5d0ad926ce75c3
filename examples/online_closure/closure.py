# SPDX-License-Identifier: MIT
"""A closure that learns while the simulation runs. Nothing in here knows of Fortran: any program may call it.

The network maps X(k-2), ..., X(k+2) to the sub-grid tendency of X(k). Every call of ``ftn_pytorch_train`` brings the
samples of one instant. They go into a replay buffer, and the optimizer takes steps on batches drawn from all of it.
There is nothing in here about files either: what the library finds among the names below is saved and restored.
"""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from ftn_pytorch import recorded
from ftn_pytorch.kit import Normaliser, Replay


def ftn_pytorch_setup(
    seed=0, width=64, lr=1e-2, batch=256, capacity=2**17, warm_up=1600, steps=8000, steps_per_call=1, memory=2000
):
    """Make the network and its buffer. Runs once after the script was loaded; the arguments come from the caller.

    capacity: samples in the buffer, the newest replace the oldest. warm_up: samples to collect before the first step.
    steps: optimizer steps after which learning is reported as completed. memory: steps that weights are averaged over.
    """
    global settings, network, optimizer, average, replay, scale_x, scale_target, steps_done
    settings = {"batch": batch, "warm_up": warm_up, "steps": steps, "steps_per_call": steps_per_call}
    steps_done = 0
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Linear(5, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1), nn.Flatten(0)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=lr, fused=True)

    # Learning online has no end, so the learning rate cannot be lowered towards one. The average of the weights
    # over the latest steps does the same to the noise, at any time: it is what predicts.
    def newer(averaged, newest, count):
        return averaged.lerp(newest, 1 / min(count + 1, memory))

    average = AveragedModel(network, avg_fn=newer)
    # A copy of the samples: what arrives may be memory of the simulation, which the next time step overwrites.
    replay = Replay(capacity, seed=seed)
    scale_x, scale_target = Normaliser(5), Normaliser(())


@torch.inference_mode()
def ftn_pytorch_forward(x):
    """Sub-grid tendency, (n,), for stencils, (n, 5)."""
    # The mean of the targets until something is learnt. A buffer says so: training in another process publishes it, too
    prediction = scale_target.denormalise(average(scale_x(x)))
    return torch.where(average.n_averaged > 0, prediction, scale_target.mean.to(x.dtype))


def ftn_pytorch_train(x, target):
    """Keep the samples, take the optimizer's steps; whether it has made all of them, and the loss of the last one.

    The loss is given as the share of the batch's variance that it leaves.
    """
    global steps_done
    replay.add(x, target)
    if replay.seen < settings["warm_up"]:
        return False, 1.0  # predicting the mean
    if steps_done == 0:
        # Shift and scale of the inputs, and of the target: taken once, from the samples of the warm-up.
        for scale, samples in zip((scale_x, scale_target), replay[:]):
            scale.update(samples)
            scale.freeze()
    for _ in range(settings["steps_per_call"]):
        inputs, targets = replay.sample(settings["batch"])
        targets = scale_target(targets)
        loss = step(inputs, targets)
        steps_done += 1
        average.update_parameters(network)
    return steps_done >= settings["steps"], loss / targets.var()


@recorded
def step(inputs, targets):
    """One step of the optimizer, and the loss before it. After some calls it runs without Python."""
    loss = nn.functional.mse_loss(network(scale_x(inputs)), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def progress():
    """What the learner has done so far, as numbers for the caller to report."""
    return {"steps": steps_done, "samples": replay.seen, "parameters": sum(p.numel() for p in network.parameters())}
