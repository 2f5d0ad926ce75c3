# SPDX-License-Identifier: MIT
"""Functions that change what they are given, or return what a compiler cannot foresee."""


def add_one(x):
    x += 1


def plus_one(x):
    return x + 1


def pair_plus_one(x, y):
    return y + 1


def named_plus_one(x):
    return {"y": x + 1}


def total(x):
    return float(x.sum())


def ftn_pytorch_forward(inputs):
    inputs[0] += 1
    return inputs[0]
