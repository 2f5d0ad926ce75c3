# SPDX-License-Identifier: MIT
"""The network that both loops train, and the same work in Python: the floor of the benchmark."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.serve import serve  # noqa: E402

SIZE, BATCH = 1000, 32

torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(
    torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)
)


def ftn_pytorch_forward(x):
    return net(x)


def scope(calls):
    for _ in range(calls):
        pass


def expression(calls):
    for _ in range(calls):
        a * b + c


def function(calls):
    for _ in range(calls):
        torch.exp(a)


def training(calls):
    for _ in range(calls):
        loss = torch.nn.functional.mse_loss(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    a, b, c = (torch.rand(SIZE) for _ in range(3))
    x, target = torch.rand(BATCH, 16), torch.rand(BATCH, 4)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    serve({"scope": scope, "expression": expression, "function": function, "training": training})
