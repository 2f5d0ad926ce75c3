# SPDX-License-Identifier: MIT
"""Write the models that the tests of the module ftorch load into the current folder. Their answers are simple."""

import warnings

import torch
from torch import Tensor, nn

warnings.simplefilter("ignore", DeprecationWarning)


class Scaled(nn.Module):
    """The last axis times 0 to 4, whatever stands before it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 5, bias=False)
        self.linear.weight.data = torch.diag(torch.arange(5.0))

    def forward(self, x):
        return self.linear(x)


class Two(nn.Module):
    """Sum and difference."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x + y, x - y


class Picture(nn.Module):
    """(batch, channel, y, x): the mean of each channel, and where its largest value is along x."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.mean(dim=(2, 3)), x.amax(dim=2).argmax(dim=2)


class Dropped(nn.Module):
    """The input; in training mode half of it is zero, and the rest twice as large."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x)


class Permuted(nn.Module):
    """A matrix that is to be learnt, from the unit matrix on."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 5, bias=False)
        self.linear.weight.data = torch.eye(5)

    def forward(self, x):
        return self.linear(x)


class Asks(nn.Module):
    """1 where gradients are on, else 2."""

    def forward(self, x):
        return torch.ones_like(x) if torch.is_grad_enabled() else 2 * torch.ones_like(x)


class Split(nn.Module):
    """Twice the input, and zeros."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * x, 0 * x


class Total(nn.Module):
    """The sum, which is a scalar."""

    def forward(self, x):
        return x.sum()


def write_models():
    for model in (Scaled(), Two(), Picture(), Dropped(), Permuted(), Asks(), Split(), Total()):
        torch.jit.script(model).save(f"ftorch_{type(model).__name__.lower()}.pt")


if __name__ == "__main__":
    write_models()
