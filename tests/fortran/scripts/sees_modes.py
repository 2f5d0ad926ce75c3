# SPDX-License-Identifier: MIT
"""What a script sees of the modes of torch, as numbers."""

import os

import torch


def modes():
    return [
        int(torch.is_grad_enabled()),
        int(torch.is_inference_mode_enabled()),
        int(torch.is_autocast_enabled("cpu")),
        int(torch.are_deterministic_algorithms_enabled()),
        int(torch.get_default_device().type != "cpu"),
        torch.get_default_dtype().itemsize,
    ]


def process():
    """What belongs to the process: folder, umask, environment, settings of torch's kernels, flush to zero."""
    mask = os.umask(0)
    os.umask(mask)
    tiny = torch.full([1], 1e-39)
    return [
        int(os.getcwd() == "/"),
        mask,
        int("FPT_TEST_LEFT" in os.environ),
        int(torch.get_float32_matmul_precision() == "medium"),
        int(torch.backends.cudnn.benchmark),
        int(float(tiny * 0.5) == 0),
    ]


def switch_off():
    torch.set_grad_enabled(False)


class Asks(torch.nn.Module):
    def forward(self, x):
        return x + torch.ones([3]) if torch.is_grad_enabled() else x


def write(file):
    torch.jit.script(Asks()).save(file)
