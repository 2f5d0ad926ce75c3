# SPDX-License-Identifier: MIT
"""python -m ftn_pytorch.compiling FOLDER < plan: compile a pickled plan to FOLDER/KEY.pt2, unless that is there.

What goes wrong is the last line of stderr, and then the exit code is 1.
"""

import os
import pickle
import sys

import torch
from filelock import FileLock

from ..system import private_names
from .plan import Plan
from .program import Program


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
    with torch.no_grad():
        program = torch.export.export(Program(plan), tuple(tensors), strict=False)
    unfinished = f"{path.removesuffix('.pt2')}.{os.getpid()}.pt2"
    private_names.aoti_compile(program, unfinished, {"cpp.threads": plan.threads})
    os.replace(unfinished, path)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as failure:
        print(f"{type(failure).__name__}: {str(failure).strip().partition(chr(10))[0]}", file=sys.stderr)
        sys.exit(1)
