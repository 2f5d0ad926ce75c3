# SPDX-License-Identifier: MIT
"""What the advection of the program leaves out, learnt from pairs of fields.

The program knows nothing of the network: it asks for the correction, its tangent and its adjoint.
"""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)

net = torch.nn.Sequential(
    torch.nn.Conv1d(1, 16, 3, padding=1, padding_mode="circular"),
    torch.nn.Tanh(),
    torch.nn.Conv1d(16, 16, 1),
    torch.nn.Tanh(),
    torch.nn.Conv1d(16, 1, 1),
).double()


SIZE = 0.01
"""What is missing in a step is about as large as this; networks prefer numbers near one."""


def correction(field):
    """What a step has to add to the advected field, of the same shape (points)."""
    return SIZE * net(field.reshape(1, 1, -1)).reshape(-1)


def learn(before, missing, epochs):
    """Fit the network to examples, (samples, points) each; the error that remains, relative to what is missing."""
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(before.unsqueeze(1)).squeeze(1), missing / SIZE)
        loss.backward()
        optimizer.step()
        schedule.step()
    return SIZE * (loss.detach() / missing.square().mean()).sqrt()
