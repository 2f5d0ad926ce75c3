# SPDX-License-Identifier: MIT
"""A small network, and how it learns a curve. Nothing in it speaks of derivatives."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)

net = torch.nn.Sequential(torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1)).double()


def ftn_pytorch_forward(x):
    """The response at each point, (points, 1) as x."""
    return net(x)


def learn(x, wanted):
    """Fit the network to a curve, (points, 1) each; the mean squared error that remains."""
    optimizer = torch.optim.LBFGS(
        net.parameters(), max_iter=2000, line_search_fn="strong_wolfe", tolerance_change=1e-12
    )

    def error():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), wanted)
        loss.backward()
        return loss

    optimizer.step(error)
    return error().detach()
