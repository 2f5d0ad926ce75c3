# SPDX-License-Identifier: MIT
"""Tensors in Fortran expressions beside the same loops in Python.

python benchmarks/tensors/run.py [build folder]

Both processes live at the same time, on one core, and take turns. The fastest of all rounds counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CALLS = {"scope": 2000, "expression": 500, "function": 500, "training": 50}
ROUNDS = 100


def main(build: str = "build/release") -> int:
    """Measure and print a table, in microseconds."""
    program = Path(build) / "benchmarks" / "tensors" / "bench_tensors"
    if not program.is_file():
        print(f"there is no {program}: cmake --build {build} --target bench_tensors", file=sys.stderr)
        return 2
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    fortran = start([str(program), str(HERE / "network.py")])
    python = start([sys.executable, str(HERE / "network.py")])
    best: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for case, calls in CALLS.items():
            for side, process in (("Fortran", fortran), ("Python", python)):
                took = ask(process, f"{case} {calls}") / calls * 1e6
                best[case, side] = min(took, best.get((case, side), took))
    print("| loop | Fortran | Python | difference | ratio |\n|---|---|---|---|---|")
    for case in CALLS:
        ours, floor = best[case, "Fortran"], best[case, "Python"]
        print(f"| {case} | {ours:.2f} us | {floor:.2f} us | {ours - floor:+.2f} us | {ours / floor:.3f} |")
    return 0


def start(command: list[str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    if process.stdout.readline().strip() != "ready":
        raise RuntimeError(f"{command[0]} did not start")
    return process


def ask(process: subprocess.Popen[str], request: str) -> float:
    assert process.stdin and process.stdout
    print(request, file=process.stdin, flush=True)
    return float(process.stdout.readline())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
