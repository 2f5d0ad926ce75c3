# SPDX-License-Identifier: MIT
"""A closure for a coarse solver, trained a priori (on single steps) and a posteriori (through the solver)."""

import torch

from ftn_pytorch import procedure

torch.set_num_threads(1)
solver = procedure("solver")
STEPS = 20
"""Length of the runs that are trained through."""


class Closure(torch.nn.Module):
    """What is to be added after a step: the divergence of a flux, so nothing is created or lost."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.flux = torch.nn.Sequential(
            torch.nn.Conv1d(1, 16, 4),
            torch.nn.Tanh(),
            torch.nn.Conv1d(16, 16, 1),
            torch.nn.Tanh(),
            torch.nn.Conv1d(16, 1, 1),
        ).double()

    def forward(self, u):
        around = torch.cat([u[:, -1:], u, u[:, :2]], 1)
        flux = 0.1 * self.flux(around.unsqueeze(1)).squeeze(1)
        return torch.roll(flux, 1, 1) - flux


closures = {"a priori": Closure(), "a posteriori": Closure()}


def advance(name, u):
    """Fields (samples, cells) a step later, with a closure or with none."""
    later = solver(u)
    return later + closures[name](later) if name in closures else later


@torch.no_grad()
def run(name, start, steps):
    """The fields after each of so many steps, (steps, samples, cells)."""
    fields = [start]
    for _ in range(steps):
        fields.append(advance(name, fields[-1]))
    return torch.stack(fields[1:])


def train_a_priori(runs, epochs):
    """Each step of the reference, (steps, samples, cells), is an example of its own."""
    before, after = runs[:-1].flatten(0, 1), runs[1:].flatten(0, 1)
    coarse = solver(before)
    return fit(closures["a priori"], lambda net: ((coarse + net(coarse) - after) / 0.01).square().mean(), epochs)


def train_a_posteriori(runs, epochs):
    """Whole runs of some steps are compared: the gradient goes back through the solver and its adjoint."""
    closures["a posteriori"].load_state_dict(closures["a priori"].state_dict())
    starts = range(0, len(runs) - STEPS, STEPS)
    begin = torch.cat([runs[start] for start in starts])
    wanted = torch.stack([torch.cat([runs[start + step] for start in starts]) for step in range(1, STEPS + 1)])

    def error(net):
        u, total = begin, 0
        for reference in wanted:
            u = advance("a posteriori", u)
            total = total + (u - reference).square().mean()
        return total

    return fit(closures["a posteriori"], error, epochs, lr=2e-3)


def fit(net, error, epochs, lr=1e-2):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = error(net)
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.detach()


def fits():
    """Whether the adjoint of the solver is that of the solver, compared with differences."""
    return torch.autograd.gradcheck(solver, (torch.rand(2, 12, dtype=torch.float64, requires_grad=True),))
