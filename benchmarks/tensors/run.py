# SPDX-License-Identifier: MIT
"""Tensors in Fortran expressions beside the same loops in Python.

python benchmarks/tensors/run.py [build folder]

Both processes live at the same time, on one core, and take turns. The fastest of all rounds counts.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from analysis.turns import ask, start  # noqa: E402

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


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
