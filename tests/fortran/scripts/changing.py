# SPDX-License-Identifier: MIT
"""A network whose parameters get other memory, other types and other values while the program looks at them."""

import torch

net = torch.nn.Linear(3, 2)
half = torch.nn.Linear(3, 2).half()


def renew(value: float) -> None:
    """As flattened parameters and the training of others do: the parameters get other memory."""
    torch.nn.utils.vector_to_parameters(torch.full((8,), value), net.parameters())


def widen() -> None:
    net.double()


def fill_half(value: float) -> None:
    """Past the count of changes that torch keeps."""
    half.weight.data.fill_(value)


def half_weight() -> dict:
    return {"weight": half.weight}


def kind(x) -> str:
    return type(x).__name__


def scaled(x, s):
    return x * s
