# SPDX-License-Identifier: MIT
"""How much the velocity of an oscillator changes within a time step, which is a plain number."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))


@torch.inference_mode()
def ftn_pytorch_forward(x, v, dt):
    return dt * net(torch.stack([x, v], dim=-1)).squeeze(-1)
