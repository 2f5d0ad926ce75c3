# SPDX-License-Identifier: MIT
"""Takes keyword arguments, which an argument list can carry too."""


def ftn_pytorch_forward(x, *, scale, shift=0, label=""):
    return scale * x + shift + len(label)
