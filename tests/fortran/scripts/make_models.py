# SPDX-License-Identifier: MIT
"""Write the TorchScript models of the tests into the current folder. Their answers can be computed by hand."""

import warnings

import torch

warnings.simplefilter("ignore", DeprecationWarning)


class Image(torch.nn.Module):
    """Sum of the channel means, times 1 to 5."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 5, bias=False)
        self.linear.weight.data = torch.arange(1.0, 6.0).reshape(5, 1).repeat(1, 3)

    def forward(self, x):
        return self.linear(x.mean(dim=(2, 3)))


class Polynomial(torch.nn.Module):
    """Coefficients of the Legendre polynomials on [0, 1], which any gradient descent finds."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 1)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        y = 2 * x - 1
        return self.linear(torch.cat([y, (3 * y**2 - 1) / 2, (5 * y**3 - 3 * y) / 2], dim=1))


class Affine(torch.nn.Module):
    """2 x + 1, and a second method."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2).double()
        self.linear.weight.data = 2 * torch.eye(2, dtype=torch.float64)
        torch.nn.init.ones_(self.linear.bias)

    def forward(self, x):
        return self.linear(x)

    @torch.jit.export
    def both(self, x, shift: float = 0.0):
        return x + shift, x - shift


def write_models():
    for name, model in (("image", Image()), ("polynomial", Polynomial()), ("affine", Affine())):
        torch.jit.script(model).save(f"{name}.pt")


if __name__ == "__main__":
    write_models()
