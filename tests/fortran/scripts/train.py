# SPDX-License-Identifier: MIT
"""Receives images and a scalar as one list; its answers can be computed by hand."""

import torch

weight = torch.ones(1, requires_grad=True)


def ftn_pytorch_forward(inputs):
    images, scale = inputs
    return scale * weight.detach() * images.mean(dim=(2, 3))


def ftn_pytorch_train(inputs, target):
    images, scale = inputs
    loss = ((scale * weight * images.mean() - target) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        weight.sub_(0.1 * weight.grad)
        weight.grad.zero_()
    return loss < 1e-3, loss
