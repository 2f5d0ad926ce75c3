# SPDX-License-Identifier: MIT
"""Starts workers the way that runs sys.executable anew."""

import multiprocessing


def square(x):
    return x * x


def workers():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return sum(pool.map(square, [1, 2, 3]))
