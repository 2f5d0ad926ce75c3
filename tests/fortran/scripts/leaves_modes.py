# SPDX-License-Identifier: MIT
"""A script that leaves modes of torch behind: a default type at its import, others in its calls."""

import os

import sees_modes
import torch

torch.set_default_dtype(torch.float64)  # as packages for interatomic potentials do
entered = []


def leave(mode):
    if mode == "gradients":
        torch.set_grad_enabled(False)
    elif mode == "inference":
        entered.append(torch.inference_mode())
        entered[-1].__enter__()
    elif mode == "autocast":
        entered.append(torch.autocast("cpu", dtype=torch.bfloat16))
        entered[-1].__enter__()
    elif mode == "deterministic":
        torch.use_deterministic_algorithms(True)
    elif mode == "device":
        torch.set_default_device("meta")
    elif mode == "default type":
        torch.set_default_dtype(torch.float16)


def fail(mode):
    leave(mode)
    raise ValueError(mode)


def change_process():
    os.chdir("/")
    os.umask(0o77)
    os.environ["FPT_TEST_LEFT"] = "1"
    torch.set_float32_matmul_precision("medium")
    torch.backends.cudnn.benchmark = True
    torch.set_flush_denormal(True)


def clear():
    """As after the import."""
    while entered:
        entered.pop().__exit__(None, None, None)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float64)


def modes():
    return sees_modes.modes()


def within(x):
    """What a procedure of the program calls, and what this script sees after it."""
    import ftn_pytorch

    torch.set_grad_enabled(False)
    ftn_pytorch.procedure("calls_another")(x)
    return modes()
