# SPDX-License-Identifier: MIT
"""One network over several ranks, in a recorded step."""

import torch

from ftn_pytorch import all_reduce_mean, average_gradients, recorded

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)


@recorded
def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = (net(x) - target.sum(1, keepdim=True)).square().mean()
    loss.backward()
    average_gradients(net)
    optimizer.step()
    return False, all_reduce_mean(loss)
