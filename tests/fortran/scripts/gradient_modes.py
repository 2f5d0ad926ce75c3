# SPDX-License-Identifier: MIT
"""Networks that compute other numbers where gradients are off, and what torch.jit gives in each mode."""

import torch
from sees_modes import Asks


class Padded(torch.nn.Module):
    """A transformer: where gradients are off, torch takes a kernel of its own, with other numbers at padded places."""

    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)

    def forward(self, x):
        return self.encoder(x, src_key_padding_mask=x[:, :, 0] < 0)


def made(file):
    torch.manual_seed(3)
    return Padded().eval() if file == "padded.pt" else Asks()


def write():
    for file in ("padded.pt", "asks_modes.pt"):
        torch.jit.script(made(file)).save(file)


def plain(file, x, gradients):
    """What plain Python computes."""
    with torch.set_grad_enabled(gradients != 0):
        return torch.jit.load(file)(x)


models = []


def ftn_pytorch_setup(file=""):
    models[:] = [made(file)]


def ftn_pytorch_forward(x):
    return models[0](x)
