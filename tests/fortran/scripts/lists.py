# SPDX-License-Identifier: MIT
"""Takes the argument list of torch_tensor_wrap as one list."""

import torch

received = []


def ftn_pytorch_forward(inputs):
    received[:] = [describe(x) for x in inputs]
    return torch.tensor([len(inputs)])


def ftn_pytorch_train(inputs, target):
    received[:] = [describe(x) for x in inputs]
    return len(inputs) > 1, float(target.sum())


def describe(x):
    if isinstance(x, torch.Tensor):
        return f"tensor{tuple(x.shape)}={float(x.sum())}"
    return f"{type(x).__name__}={x}"


def what(index):
    return received[index - 1]
