# SPDX-License-Identifier: MIT
"""Functions for test_hostile.py. The framework is that of the file's second name: hostile_numpy.py is a copy."""

FRAMEWORK = "numpy" if "numpy" in __name__ else "torch"
ftn_pytorch_framework = FRAMEWORK

if FRAMEWORK == "torch":
    import torch
else:
    import numpy  # noqa: F401  loaded for what it does to the process

kept = []


def same(x, expected):
    """x itself, after a look at its shape and type."""
    found = f"{tuple(getattr(x, 'shape', ()))} {type(x).__name__ if not hasattr(x, 'dtype') else x.dtype}"
    if found.replace("torch.", "") != expected:
        raise AssertionError(f"{found} instead of {expected}")
    return x


def convert(x, dtype):
    return x.to(getattr(torch, dtype)) if FRAMEWORK == "torch" else x.astype(dtype)


def meets(x, action):
    """What x is, and then something is done to it that a script should not do."""
    before = x.clone() if FRAMEWORK == "torch" else x.copy()
    ACTIONS[action](x)
    return before


def is_text(text, hexadecimal):
    if text.encode("utf-8", "surrogatepass").hex() != hexadecimal:
        raise AssertionError(ascii(text))


def _swap(x):
    torch.utils.swap_tensors(x, torch.zeros(3, dtype=x.dtype))


def _point_elsewhere(x):
    x.data = torch.zeros(5, dtype=x.dtype)


def _graph(x):
    if x.is_floating_point():
        kept.append((x * torch.ones((), dtype=x.dtype, requires_grad=True)).sum())


def _reshape(x):
    if x.flags.c_contiguous:
        x.shape = (x.size,)


ACTIONS = {
    "nothing": lambda x: None,
    "keep": kept.append,
    "keep view": lambda x: kept.append(x[:1] if x.ndim else x),
    "forget": lambda x: kept.clear(),
}
if FRAMEWORK == "torch":
    ACTIONS |= {
        "keep memory": lambda x: kept.append(x.untyped_storage()),
        "keep data": lambda x: kept.append(x.data),
        "keep graph": _graph,
        "gradient": lambda x: x.requires_grad_() if x.is_floating_point() else None,
        "turn": lambda x: x.t_() if x.ndim == 2 else None,
        "resize": lambda x: x.resize_(1) if x.numel() > 1 and x.is_contiguous() else None,
        "set": lambda x: x.set_(torch.zeros(2, dtype=x.dtype)),
        "elsewhere": _point_elsewhere,
        "swap": _swap,
        "add axis": lambda x: x.unsqueeze_(0) if x.ndim < 6 else None,
        "attribute": lambda x: setattr(x, "owner", x),
    }
else:
    ACTIONS |= {"reshape": _reshape, "other type": lambda x: setattr(x, "dtype", f"V{x.itemsize}")}
