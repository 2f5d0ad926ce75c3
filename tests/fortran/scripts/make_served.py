# SPDX-License-Identifier: MIT
"""Teach a network a heating rate, and write it for a program and for a server: python make_served.py FOLDER"""

import sys
from pathlib import Path

import numpy
import torch

LEVELS = 8
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(LEVELS, 32), torch.nn.Tanh(), torch.nn.Linear(32, LEVELS))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(600):
    temperature = torch.randn(256, LEVELS)
    heating = -torch.tanh(temperature - temperature.mean(1, keepdim=True))
    loss = torch.nn.functional.mse_loss(net(temperature), heating)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"the network leaves {loss / heating.var():.2f} of the variance of the heating")
torch.jit.trace(net, temperature).save(str(folder / "heating.pt"))
numpy.savez(folder / "heating.npz", *(parameter.detach().numpy() for parameter in net.parameters()))
