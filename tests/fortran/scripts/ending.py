# SPDX-License-Identifier: MIT
"""What is left to do when a program ends: a text in a buffer, exit functions, threads."""

import atexit
import sys
import threading

import torch

atexit.register(lambda: print("exit function", float(torch.ones(3).add_(1).sum()) - 3))


def prints():
    torch.ones(3).add_(1)  # what torch makes at the first use must still be there for the exit function
    sys.stdout.write("without newline ")


def joins():
    """A process group with all ranks, which nobody destroys."""
    import ftn_pytorch

    ftn_pytorch.init_process_group()
    torch.distributed.all_reduce(torch.ones(1))


def shares():
    """What torch makes for this thread when it first computes with such a tensor is an object of Python."""
    from torch.distributed import HashStore, init_process_group
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_tensor

    init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    x = distribute_tensor(torch.ones(3), init_device_mesh("cpu", (1,)), [Replicate()])
    assert (x + x).full_tensor().tolist() == [2.0] * 3


def shares_and_fails():
    shares()
    raise ValueError("after that")


def fails():
    raise ValueError("of this rank alone")


def calls_at_exit():
    """A procedure of the program, which begins a scope when the program has ended."""
    import ftn_pytorch

    twice = ftn_pytorch.procedure("twice")
    atexit.register(lambda: print("twice", *twice(torch.ones(2)).tolist(), flush=True))


def starts_threads():
    def run():
        while True:
            torch.ones(1000).add_(1)

    for _ in range(3):
        threading.Thread(target=run, daemon=True).start()
