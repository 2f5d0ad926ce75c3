# SPDX-License-Identifier: MIT
"""The script that the files beside it are of.

Format 2 was written by 0.2.0; the file of format 1 says less of itself."""

import collections

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)


class History:
    def __init__(self):
        self.losses, self.owner = [], self


def make():
    calls = 0

    def count():
        nonlocal calls
        calls += 1
        return calls

    return count


history, count = History(), make()
buffer = collections.deque(maxlen=3)
table = {"best": None, ("a", 1): torch.zeros(2)}
steps = 0


def step():
    global steps
    steps += 1
    optimizer.zero_grad()
    loss = net(torch.rand(5, 2)).square().mean() + count()
    loss.backward()
    optimizer.step()
    history.losses.append(loss.item())
    buffer.append((steps, loss.detach()))
    table["best"] = min(history.losses)
    table["a", 1] += 1
    return loss.item() + sum(each for each, _ in buffer) + table["best"] + table["a", 1].sum().item() + steps
