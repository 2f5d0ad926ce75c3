# SPDX-License-Identifier: MIT
"""A network that learns what the reaction does in one step of the model. Nothing in here knows of Fortran."""

import time

import torch

from ftn_pytorch import recorded
from ftn_pytorch.kit import Background, Normaliser, Replay

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Linear(2, 64), torch.nn.SiLU(), torch.nn.Linear(64, 64), torch.nn.SiLU(), torch.nn.Linear(64, 2)
)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, fused=True)
scale_x, scale_target = Normaliser(2), Normaliser(2)
replay = Replay(2**16)
WARM_UP = 20  # calls whose samples settle shift and scale
background = None


def ftn_pytorch_setup(learn="synchronous", steps_per_call=4, timeline=""):
    """How it is learnt: "synchronous", or "thread". "process" is the business of load, which knows an option for it."""
    global background, per_call, file
    per_call = steps_per_call
    file = open(timeline, "w", buffering=1) if timeline else None  # noqa: SIM115
    if learn == "thread":
        background = Background(train, net)


def ftn_pytorch_train(x, target):
    """Concentrations before the reaction, (cells, 2), and what it adds to them."""
    return background.submit(x, target) if background else train(x, target)


def train(x, target):
    """Keep the samples, and take some steps of the optimizer."""
    begin = time.monotonic()
    replay.add(x, target)
    if replay.seen <= WARM_UP * len(x):
        scale_x.update(x)
        scale_target.update(target)
        return False, 1.0
    scale_x.freeze()
    scale_target.freeze()
    for _ in range(per_call):
        inputs, targets = replay.sample(512)
        loss = step(scale_x(inputs), scale_target(targets))
    if file:
        file.write(f"training,{begin:.6f},{time.monotonic():.6f}\n")
    return False, loss


@recorded
def step(inputs, targets):
    """One step of the optimizer, and the loss before it. After some calls it runs without Python and its lock."""
    loss = torch.nn.functional.mse_loss(net(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@torch.inference_mode()
def ftn_pytorch_forward(x):
    """What the reaction adds, (cells, 2)."""
    predict = background.published if background else net
    return scale_target.denormalise(predict(scale_x(x)))
