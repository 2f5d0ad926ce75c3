# SPDX-License-Identifier: MIT
"""A closure that learns while the model runs: from X(k-2), ..., X(k+2) to what the fast variables do to X(k)."""

import torch
from torch import nn

from ftn_pytorch import recorded
from ftn_pytorch.kit import Guard, Log, Normaliser, Replay

WARM_UP = 50  # calls that bring samples only
BATCH = 256

torch.manual_seed(0)
scale_x, scale_u = Normaliser(5), Normaliser(1)
net = nn.Sequential(nn.Linear(5, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
replay = Replay(20_000, held_out=0.1)
guard = Guard(net, optimizer)
log = Log("run/log.csv", console=5)
calls = 0


@log.timing
def ftn_pytorch_train(x, u):
    """Keep the samples, (n, 5) and (n, 1), and take a step; the loss is the share of the variance that is left."""
    global calls
    calls += 1
    replay.add(x, u)
    guard.learn_range(x)
    if calls < WARM_UP:
        return False, 1.0
    if calls == WARM_UP:
        for scale, samples in zip((scale_x, scale_u), replay[:]):
            scale.update(samples)
            scale.freeze()
    scale_x.update(x)  # tells how far the inputs drift from those of the warm-up
    loss, norm = gradients(*replay.sample(BATCH))
    numbers = {"loss": loss, "lr": optimizer.param_groups[0]["lr"]}
    if guard.allows(loss):
        numbers["gradient_norm"] = norm
        optimizer.step()
    if calls % 50 == 0:
        with torch.no_grad():
            numbers |= {"held_out": error(*replay.held_out[:]), "drift": scale_x.drifted}
    log.write(calls, **numbers)
    return False, loss


@recorded  # runs without Python after some calls
def gradients(x, u):
    """The loss of a batch, and the norm of its gradients, which the parameters have then, clipped."""
    optimizer.zero_grad()
    loss = error(x, u)
    loss.backward()
    return loss, nn.utils.clip_grad_norm_(net.parameters(), 1.0)


@torch.no_grad()
def ftn_pytorch_forward(x):
    """What the fast variables do to X, (n, 1). The mean, where X is out of the range that was learnt."""
    mean = scale_u.mean.to(x.dtype)
    return torch.where(guard.outside(x)[:, None], mean, scale_u.denormalise(net(scale_x(x))))


def error(x, u):
    """Mean squared error, in units of the variance."""
    return nn.functional.mse_loss(net(scale_x(x)), scale_u(u))
