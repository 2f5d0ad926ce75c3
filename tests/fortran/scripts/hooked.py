# SPDX-License-Identifier: MIT
"""A model that has a hook."""

import torch


class Hooked(torch.nn.Module):
    """Its hook doubles what it returns; within another module the hook is part of that one's code."""

    def __init__(self):
        super().__init__()
        self.register_forward_hook(twice)

    def forward(self, x):
        return x + 1


def twice(self, input: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    return 2 * output
