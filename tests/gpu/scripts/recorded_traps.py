# SPDX-License-Identifier: MIT
"""Functions that are recorded, and a number of the host that they use."""

import logging
import logging.handlers

import torch

executions = logging.handlers.BufferingHandler(1 << 20)
log = logging.Logger("executions", logging.INFO)  # no number depends on a log
log.addHandler(executions)


def ftn_pytorch_setup(kind="scale", width=64):
    global net, dt, forward
    torch.manual_seed(3)
    dt = torch.tensor(0.5)
    layers = [torch.nn.Linear(width, 512), torch.nn.Tanh(), torch.nn.Linear(512, 512), torch.nn.Linear(512, width)]
    net = torch.nn.Sequential(*layers).to("cuda")
    forward = {"scale": scale, "scale_by_global": scale_by_global, "apply": apply, "mean": mean}[kind]


def scale(x, dt):
    return x * dt


def scale_by_global(x):
    return x * dt


def apply(x):
    return net(x)


def mean(x):
    return x.to("cuda").mean().reshape(1)


def ftn_pytorch_forward(*given):
    log.info("a hook")
    return forward(*given)


def executed():
    return len(executions.buffer)


def set_number(value):
    dt.fill_(value)


def busy():
    """Work that the next call has to wait for."""
    a = torch.ones(4096, 4096, device="cuda")
    for _ in range(20):
        a = a @ a * 1e-4
