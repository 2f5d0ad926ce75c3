# SPDX-License-Identifier: MIT
"""A closure that learns while the simulation runs. Nothing in here knows of Fortran: any program may call it.

The network maps X(k-2), ..., X(k+2) to the sub-grid tendency of X(k). Every call of ``ftn_pytorch_train`` brings the
samples of one instant. They go into a replay buffer, and the optimizer takes steps on batches drawn from all of it.
"""

import copy
from pathlib import Path

import torch
from torch import nn


def ftn_pytorch_setup(
    seed=0, width=64, lr=1e-2, batch=256, capacity=2**17, warm_up=1600, steps=8000, steps_per_call=1, memory=2000
):
    """Make the network and its buffer. Runs once after the script was loaded; the arguments come from the caller.

    capacity: samples in the buffer, the newest replace the oldest. warm_up: samples to collect before the first step.
    steps: optimizer steps after which learning is reported as completed. memory: steps that weights are averaged over.
    """
    global learner
    learner = Learner(seed, width, lr, batch, capacity, warm_up, steps, steps_per_call, memory)


@torch.inference_mode()
def ftn_pytorch_forward(x):
    """Sub-grid tendency, (n,), for stencils, (n, 5)."""
    return learner.predict(x)


def ftn_pytorch_train(x, target):
    """Keep the samples, take the optimizer's steps; whether it has made all of them, and the loss of the last one."""
    learner.keep(x, target)
    loss = learner.learn()
    return learner.steps_done >= learner.steps, loss


def ftn_pytorch_save(filename):
    Path(filename).parent.mkdir(parents=True, exist_ok=True)
    torch.save(learner.state(), filename)


def ftn_pytorch_restore(filename):
    learner.load_state(torch.load(filename, weights_only=True))


def progress():
    """What the learner has done so far, as numbers for the caller to report."""
    parameters = sum(p.numel() for p in learner.network.parameters())
    return {"steps": learner.steps_done, "samples": learner.samples_seen, "parameters": parameters}


class Learner(nn.Module):
    """The network, its optimizer, the running average of its weights, and the replay buffer.

    A module, so that all of it moves when the program loads the script with ``device="cuda"``.
    """

    def __init__(self, seed, width, lr, batch, capacity, warm_up, steps, steps_per_call, memory):
        super().__init__()
        self.batch, self.warm_up, self.memory = batch, warm_up, memory
        self.steps, self.steps_per_call = steps, steps_per_call
        self.steps_done = self.samples_seen = 0

        self.random = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self.network = nn.Sequential(
            nn.Linear(5, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=lr, fused=True)
        # Learning online has no end, so the learning rate cannot be lowered towards one. The average of the weights
        # over the latest steps does the same to the noise, at any time: it is what predicts.
        self.average = copy.deepcopy(self.network).requires_grad_(False)

        self.register_buffer("x", torch.empty(capacity, 5))
        self.register_buffer("target", torch.empty(capacity))
        # Shift and scale of the inputs, and of the target. Taken once, from the samples of the warm-up.
        self.scales = {"x": (torch.zeros(5), torch.ones(5)), "target": (torch.zeros(()), torch.ones(()))}

    def keep(self, x, target):
        """Copy samples into the buffer.

        What arrives may be memory of the simulation, which the next time step overwrites. Whoever keeps the tensors
        themselves keeps a view of it, and all samples become the same one: a list would need ``x.clone()``.
        """
        capacity = len(self.x)
        rows = torch.arange(self.samples_seen, self.samples_seen + len(x)) % capacity
        self.x[rows] = x
        self.target[rows] = target
        self.samples_seen += len(x)

    def learn(self):
        """Take ``steps_per_call`` steps; the last loss, as the share of the batch's variance that it leaves."""
        if self.samples_seen < self.warm_up:
            return 1.0  # predicting the mean
        filled = min(self.samples_seen, len(self.x))
        if self.steps_done == 0:
            self.scales = {name: scale(getattr(self, name)[:filled]) for name in self.scales}
        for _ in range(self.steps_per_call):
            rows = torch.randint(filled, (self.batch,), generator=self.random)
            prediction = self.network(normalised(self.x[rows], self.scales["x"])).squeeze(1)
            target = normalised(self.target[rows], self.scales["target"])
            loss = nn.functional.mse_loss(prediction, target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.steps_done += 1
            self.update_average()
        return loss.detach() / target.var()

    @torch.no_grad()
    def update_average(self):
        weight = 1 / min(self.steps_done, self.memory)
        for average, newest in zip(self.average.parameters(), self.network.parameters()):
            average.lerp_(newest, weight)

    def predict(self, x):
        shift, width = self.scales["target"]
        if self.steps_done == 0:
            return shift.expand(len(x))  # knows nothing yet
        return torch.addcmul(shift, self.average(normalised(x, self.scales["x"])).squeeze(1), width)

    def state(self):
        return {
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scales": self.scales,
            "steps_done": self.steps_done,
            "x": self.x[: self.samples_seen],
            "target": self.target[: self.samples_seen],
            "samples_seen": self.samples_seen,
            "random": self.random.get_state(),
        }

    def load_state(self, state):
        for name in ("network", "average", "optimizer"):
            getattr(self, name).load_state_dict(state[name])
        for name in ("x", "target"):
            getattr(self, name)[: len(state[name])] = state[name]
        self.scales = state["scales"]
        self.steps_done, self.samples_seen = state["steps_done"], state["samples_seen"]
        self.random.set_state(state["random"])


def scale(samples):
    """Mean and standard deviation, over all samples."""
    return samples.mean(0), samples.std(0)


def normalised(values, shift_and_scale):
    shift, width = shift_and_scale
    return (values - shift) / width
