# SPDX-License-Identifier: MIT
"""Script of the user projects."""


def ftn_pytorch_forward(x):
    return 2 * x + 1
