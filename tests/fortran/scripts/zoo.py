# SPDX-License-Identifier: MIT
"""Models of many kinds, each of which takes one array (32, 16) of float32: scripted and traced, in both modes."""

import torch
from torch import nn


class Residual(nn.Module):
    """Modules in modules, and functions that call functions."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([block() for _ in range(3)])
        self.last = nn.Linear(16, 4)

    def forward(self, x):
        for layer in self.blocks:
            x = x + layer(x)
        return scaled(self.last(x))


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x / norm(x)


def norm(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum().sqrt() + 1


def block():
    return nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2))


class Columns(nn.Module):
    """A network of one axis over columns: each row is a column."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x.unsqueeze(1))


class Recurrent(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        states, _ = self.network(x.unsqueeze(0))
        return self.head(states)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, x):
        return self.layer(x.unsqueeze(0))


class Branches(nn.Module):
    """Asks for the shape, and has an error of its own."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 4), nn.Bilinear(16, 16, 4)

    def forward(self, x):
        if x.dim() != 2:
            raise ValueError("two axes")
        if x.shape[0] > 1:
            return self.second(x, x)
        return self.first(x)


NETWORKS = {
    "mlp": lambda: nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4), nn.Sigmoid()),
    "dropout": lambda: nn.Sequential(nn.Linear(16, 8), nn.Dropout(0.5), nn.Linear(8, 4)),
    "batch_norm": lambda: nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)),
    "layer_norm": lambda: nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 4), nn.GELU()),
    "residual": Residual,
    "convolution": lambda: Columns(nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Conv1d(4, 1, 3))),
    "instance_norm": lambda: Columns(nn.Sequential(nn.InstanceNorm1d(1, affine=True), nn.Conv1d(1, 1, 3))),
    "lstm": lambda: Recurrent(nn.LSTM(16, 8, batch_first=True)),
    "gru": lambda: Recurrent(nn.GRU(16, 8, 2, dropout=0.1, batch_first=True)),
    "attention": Attention,
    "branches": Branches,
}


def write_zoo():
    torch.manual_seed(3)
    example = torch.rand(32, 16)
    for name, make in NETWORKS.items():
        for mode in ("training", "evaluation"):
            network = make().train(mode == "training")
            torch.jit.script(network).save(f"direct_zoo_{name}_{mode}.pt")
            if name != "branches":
                torch.jit.trace(network, example, check_trace=False).save(f"direct_zoo_{name}_{mode}_traced.pt")
