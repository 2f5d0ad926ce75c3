# SPDX-License-Identifier: MIT
"""A network whose training loop is written in Fortran. It knows nothing of that."""

import torch

torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
scale = torch.nn.Parameter(torch.ones((), dtype=torch.float64))


def ftn_pytorch_forward(x):
    return scale * net(x)


def train_here(x, y, steps):
    """The same training as in Fortran, in Python: losses, and learning rates."""
    twin = torch.nn.ModuleDict({"net": net}).requires_grad_(True)
    optimizer = torch.optim.AdamW([*twin.parameters(), scale], lr=0.05, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    loss_of = torch.nn.MSELoss()
    losses, rates = [], []
    for _ in range(int(steps)):
        optimizer.zero_grad()
        loss = loss_of(ftn_pytorch_forward(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*twin.parameters(), scale], 0.5)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        rates.append(scheduler.get_last_lr()[0])
    return torch.tensor(losses, dtype=torch.float64), torch.tensor(rates, dtype=torch.float64)


def minimize_here(x, y, steps):
    """LBFGS in Python: losses."""
    parameters = [*net.parameters(), scale]
    optimizer = torch.optim.LBFGS(parameters, lr=0.5, max_iter=5)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = ((ftn_pytorch_forward(x) - y) ** 2).mean()
        loss.backward()
        return loss

    for _ in range(int(steps)):
        losses.append(optimizer.step(closure).item())
    return torch.tensor(losses, dtype=torch.float64)
