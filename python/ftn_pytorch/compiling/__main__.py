# SPDX-License-Identifier: MIT
"""python -m ftn_pytorch.compiling FOLDER < plan: compile a pickled plan to FOLDER/KEY.pt2, unless that is there.

What goes wrong is the last line of stderr, and then the exit code is 1.
"""

import os
import pickle
import sys

import torch
from filelock import FileLock

from ..system import installation, private_names
from .plan import Plan
from .program import Program

_SETTINGS = {"cpp.use_decompose_tanh": True}
"""tanh of vectors: twice as fast, and off by 1e-7 at most."""


def main() -> int:
    os.nice(5)  # the program goes on meanwhile
    folder, plan = sys.argv[1], pickle.load(sys.stdin.buffer)
    path = os.path.join(folder, f"{plan.key()}.pt2")
    # ranks of a node, and the next run of the program, ask for the same
    with FileLock(f"{path}.lock"):
        if not os.path.exists(path):
            make(plan, path)
    return 0


def make(plan: Plan, path: str) -> None:
    """Compile; nobody sees half a file."""
    private_names.find_cxx()
    private_names.compile_without_workers()
    tensors = [each.empty() for each in plan.memory]
    if plan.numbers:
        tensors.append(torch.zeros(plan.numbers, dtype=torch.float64, device="cpu"))
    program = Program(plan)
    with torch.no_grad(), private_names.any_batch_size():
        exported = torch.export.export(program, tuple(tensors), dynamic_shapes=program.sizes(), strict=False)
    unfinished = f"{path.removesuffix('.pt2')}.{os.getpid()}.pt2"
    threads = {"cpp.threads": plan.threads, "cpp.dynamic_threads": plan.threads > 1}
    private_names.aoti_compile(
        exported, unfinished, {**_SETTINGS, **threads, **installation.settings_of_package(torch)}
    )
    os.replace(unfinished, path)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as failure:
        print(f"{type(failure).__name__}: {str(failure).strip().partition(chr(10))[0]}", file=sys.stderr)
        sys.exit(1)
