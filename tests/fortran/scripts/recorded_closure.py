# SPDX-License-Identifier: MIT
"""What a saved recording may hold: a step with random numbers, statistics and averages, and other functions."""

from collections import namedtuple

import torch

from ftn_pytorch import recorded

torch.manual_seed(1)
net = torch.nn.Sequential(
    torch.nn.Linear(16, 24), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.BatchNorm1d(24), torch.nn.Linear(24, 4)
)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, fused=True)
averaged = [parameter.detach().clone() for parameter in net.parameters()]
Moments = namedtuple("Moments", "mean spread")


def ftn_pytorch_forward(x):
    first, _, _, norm, last = net
    with torch.no_grad():
        hidden = torch.tanh(first(x))
        return last(torch.nn.functional.batch_norm(hidden, norm.running_mean, norm.running_var, norm.weight, norm.bias))


def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.huber_loss(net(x), target)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(averaged, list(net.parameters()), 0.1)
    return False, loss


@recorded
def moments(x, scale):
    return Moments(x.mean(0) * scale, x.std(0))


@recorded
def parts(x):
    return {"large": x.clamp(min=0), "count": torch.tensor(float(x.shape[0]))}


@recorded
def halve(x):
    x.mul_(0.5)
    return x.sum()


@recorded
def shared(x, y):
    y.mul_(0.5)
    return x.sum()
