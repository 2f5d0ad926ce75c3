# SPDX-License-Identifier: MIT
"""A network that learns how the velocity of an oscillator changes within a time step."""

import torch

torch.set_num_threads(1)  # a network as small as this is slower on many
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


def velocity_change(x, v, dt):
    return dt * net(torch.stack([x, v], dim=-1)).squeeze(-1)


@torch.inference_mode()
def ftn_pytorch_forward(x, v, dt):
    """The arrays of the Fortran program are tensors, its scalars are numbers."""
    return velocity_change(x, v, dt)


def ftn_pytorch_train(x, v, dt, target):
    """The inputs of forward and what it should have returned. Returns whether that is enough, and the loss."""
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(velocity_change(x, v, dt), target)
    loss.backward()
    optimizer.step()
    return loss < 1e-4, loss
