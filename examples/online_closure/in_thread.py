# SPDX-License-Identifier: MIT
"""closure.py, learnt in a thread beside the model: a call of ``ftn_pytorch_train`` copies the samples and returns."""

import closure
import torch

from ftn_pytorch.kit import Background


def ftn_pytorch_setup(steps):
    global background
    closure.ftn_pytorch_setup(steps=steps)
    background = Background(closure.ftn_pytorch_train, closure.average)


def ftn_pytorch_train(x, target):
    return background.submit(x, target)


@torch.inference_mode()
def ftn_pytorch_forward(x):
    return closure.scale_target.denormalise(background.published(closure.scale_x(x)))
