# SPDX-License-Identifier: MIT
"""One network on all ranks, and on each of them a buffer, a counter and random numbers of its own."""

import json

import torch

import ftn_pytorch
from ftn_pytorch import Checkpoint, average_gradients

rank = ftn_pytorch.rank()
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
torch.manual_seed(1 + rank)
buffer = []
steps = 0

ftn_pytorch_shared = ["net", "optimizer"]


def ftn_pytorch_train(x, target):
    global steps
    steps += 1
    buffer.append((x.clone(), target.clone()))
    inputs, targets = buffer[int(torch.randint(len(buffer), ()))]
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(inputs), targets)
    loss.backward()
    average_gradients(net)
    optimizer.step()
    return False, loss


def ftn_pytorch_setup(grown=False):
    """A network for which no file fits."""
    global net
    net = torch.nn.Linear(5, 1) if grown else net


def steps_done():
    return steps


def require_equal():
    ftn_pytorch.require_equal(net)


def report(name):
    """All that a restart must bring back, and the random number that comes next."""
    state = {
        "net": [parameter.tolist() for parameter in net.parameters()],
        "moments": [each["exp_avg_sq"].tolist() for each in optimizer.state.values()],
        "buffer": [x.tolist() for x, _ in buffer],
        "steps": steps,
        "random": torch.rand(1).item(),
    }
    with open(f"{name}_{rank}.json", "w", encoding="ascii") as file:
        json.dump(state, file)


def objects_of(folder):
    return ",".join(sorted(Checkpoint.read(folder)["objects"]))
