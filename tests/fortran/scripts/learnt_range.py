# SPDX-License-Identifier: MIT
"""A network that says which rows are outside of what it has learnt, beside its prediction."""

import torch

from ftn_pytorch import recorded
from ftn_pytorch.kit import LearntRange


class Closure(torch.nn.Module):
    """(n, 3) to their sums (n,), and (n,) bool."""

    def __init__(self):
        super().__init__()
        self.range = LearntRange(3)

    def forward(self, x):
        return x.sum(1), self.range(x)


net = Closure()
net.range.learn(torch.tensor([[0.0, -1.0, 0.1], [2.0, 1.0, 0.3]]))


@recorded
@torch.no_grad()
def ftn_pytorch_forward(x):
    return net(x)
