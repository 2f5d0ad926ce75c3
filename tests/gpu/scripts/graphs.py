# SPDX-License-Identifier: MIT
"""Functions whose graphs meet on a GPU: products with long sums, for which cuBLAS needs memory of its own, random
numbers behind long work, and a solver, which no graph can hold."""

import torch


def ftn_pytorch_setup(kind, number=1):
    global forward, a, b, ones
    torch.manual_seed(number)
    forward = {"sums": sums, "drops": drops, "solves": solves, "doubles": doubles}[kind]
    length = 64 if kind == "doubles" else 16384
    a, b = torch.randn(length, 64, device="cuda") / 128, torch.randn(64, length, device="cuda") / 8
    ones = torch.eye(64, device="cuda")


@torch.no_grad()
def ftn_pytorch_forward(x):
    return forward(x.to("cuda"))


def sums(x):
    for _ in range(30):
        x = torch.tanh((x @ b) @ a)
    return x


def drops(x):
    return torch.nn.functional.dropout(x + 0 * sums(x), 0.5)


def solves(x):
    return torch.linalg.solve(x + 100 * ones, x)


def doubles(x):
    return x * 2


def seed(number):
    torch.manual_seed(number)


def reserved():
    """MiB of the GPU that torch has."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved() / 2**20


def cached_memory_comes_back():
    """Blocks of 65 percent of a limit are freed, and then 70 percent are asked for in one."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.05)
    limit = int(0.05 * torch.cuda.mem_get_info()[1])
    kept = [torch.empty(limit // 20, dtype=torch.uint8, device="cuda") for _ in range(13)]
    del kept
    try:
        torch.empty(limit // 10 * 7, dtype=torch.uint8, device="cuda")
        return True
    except torch.OutOfMemoryError:
        return False
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()


def take():
    """Memory that torch has to give away."""
    global blocks
    torch.cuda.synchronize()
    blocks = [torch.ones(size << 18, device="cuda") for size in (1, 2, 4, 8, 16, 32, 64) for _ in range(4)]


def is_as_it_was():
    torch.cuda.synchronize()
    return all(bool((each == 1).all()) for each in blocks)
