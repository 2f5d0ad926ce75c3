# SPDX-License-Identifier: MIT
"""Asks for more memory of the GPU than there is, or than torch may have."""

import torch


def ftn_pytorch_forward(x):
    return 2 * x + 1


def too_much(x):
    return x + torch.ones(2**48, device=x.device)[: len(x)]


def leave(size):
    """Torch may have this many bytes; all of the GPU with 0."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(size / total if size else 1.0, 0)
