# SPDX-License-Identifier: MIT
"""Trains a network with statistics, beside another one, and writes both as TorchScript."""

import copy
import warnings

import torch

from ftn_pytorch.kit import Background

warnings.simplefilter("ignore", DeprecationWarning)
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
).double()
other = torch.nn.Linear(3, 2).double()
shared = torch.nn.Linear(3, 3).double()
tied = [torch.nn.Sequential(shared, torch.nn.Tanh(), torch.nn.Linear(3, 3).double())]
tied[0][2].weight = shared.weight
single = copy.deepcopy(net).float()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def ftn_pytorch_train(x, target):
    net.train()
    loss = (net(x) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    net.eval()
    return False, loss


background = Background(ftn_pytorch_train, net, deterministic=True)


@torch.no_grad()
def ftn_pytorch_forward(x):
    return net(x)


def write(name, file):
    network = tied[0] if name == "tied.0" else globals()[name]
    torch.jit.script(network.eval()).save(file)


def write_single(file):
    torch.jit.script(single.eval()).save(file)


@torch.no_grad()
def changed_tied(x):
    shared.weight *= 0.5
    return tied[0](x)


def train_beside(x, target):
    background.submit(x, target)
    background.flush()


@torch.no_grad()
def published(x):
    return background.published.eval()(x)
