# SPDX-License-Identifier: MIT
"""The network that both loops train, and the same work in Python: the floor of the benchmark."""

import sys
import time

import torch

SIZE, BATCH = 1000, 32

torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(
    torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)
)


def ftn_pytorch_forward(x):
    return net(x)


def scope(calls):
    begin = time.perf_counter()
    for _ in range(calls):
        pass
    return time.perf_counter() - begin


def expression(calls):
    a, b, c = (torch.rand(SIZE) for _ in range(3))
    begin = time.perf_counter()
    for _ in range(calls):
        a * b + c
    return time.perf_counter() - begin


def function(calls):
    a = torch.rand(SIZE)
    begin = time.perf_counter()
    for _ in range(calls):
        torch.exp(a)
    return time.perf_counter() - begin


def training(calls):
    x, target = torch.rand(BATCH, 16), torch.rand(BATCH, 4)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    begin = time.perf_counter()
    for _ in range(calls):
        loss = torch.nn.functional.mse_loss(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.perf_counter() - begin


CASES = {"scope": scope, "expression": expression, "function": function, "training": training}

if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        case, calls = line.split()
        print(f"{CASES[case](int(calls)):.9f}", flush=True)
