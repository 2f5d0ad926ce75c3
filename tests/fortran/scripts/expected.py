# SPDX-License-Identifier: MIT
"""What torch itself gives for operators and functions of tensors, compared to the last bit.

Every function returns "" or says what differs. ``result`` is a tensor, or the text of the failure where there is none.
"""

import operator
from operator import attrgetter

import torch
from torch.nn import functional

SYMBOLS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "==": operator.eq,
    "/=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def function(result, layout, name, *args):
    return compare(result, lambda: attrgetter(name)(torch)(*args))


def operation(result, symbol, left, right):
    return compare(result, lambda: SYMBOLS[symbol](left, right))


def reduction(result, layout, name, x, axis, keepdim):
    """Axis from 1, 0 for all."""
    axes = tuple(range(x.dim())) if axis == 0 else (torch_axis(layout, x, axis),)

    def expected():
        called = attrgetter(name)(torch)
        value = called(x) if axis == 0 and name != "logsumexp" else called(x, dim=axes if axis == 0 else axes[0])
        value = value if isinstance(value, torch.Tensor) else value.values
        return value.reshape([1 if i in axes else n for i, n in enumerate(x.shape)]) if keepdim else value

    return compare(result, expected)


def place(result, layout, name, x, axis):
    def expected():
        if axis == 0:
            elements = x.numpy().transpose() if layout == "reversed" else x.numpy()
            return getattr(torch, name)(torch.from_numpy(elements.flatten(order="F"))) + 1
        return getattr(torch, name)(x, dim=torch_axis(layout, x, axis)) + 1

    return compare(result, expected)


def along(result, layout, name, x, axis):
    def expected():
        value = getattr(torch, name)(x, (place,) if name == "flip" else place) if name != "diff" else x.diff(dim=place)
        return value if isinstance(value, torch.Tensor) else value.values

    place = torch_axis(layout, x, axis)
    return compare(result, expected)


def loss(result, layout, name, values, target, reduction):
    return compare(result, lambda: getattr(functional, name)(values, target, reduction=reduction))


def join(result, layout, name, axis, x, y):
    rank = x.dim() + (name == "stack")
    return compare(result, lambda: getattr(torch, name)((x, y), rank - axis if layout == "reversed" else axis - 1))


def maker(result, name, dtype, *args):
    """``args``: a shape as an array of rank 1, numbers."""
    torch.manual_seed(7)
    values = [tuple(arg.tolist()) if isinstance(arg, torch.Tensor) else arg for arg in args]
    return compare(result, lambda: getattr(torch, name)(*values, dtype=getattr(torch, dtype)))


def torch_axis(layout, x, axis):
    return x.dim() - axis if layout == "reversed" else axis - 1


def compare(result, expected):
    try:
        value = expected()
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        if isinstance(result, str) and str(error).splitlines()[0] in result:
            return ""
        return f"torch says {error}, but the result is {result}"
    if isinstance(result, str):
        return f"torch gives {value}, but the result is {result}"
    if result.dtype != value.dtype or result.shape != value.shape:
        return f"{result.dtype} {tuple(result.shape)} instead of {value.dtype} {tuple(value.shape)}"
    return "" if bits(result) == bits(value) else f"{result} instead of {value}"


def bits(tensor):
    resolved = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return bytes(resolved.reshape(-1).view(torch.uint8).numpy())
