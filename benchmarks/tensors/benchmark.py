# SPDX-License-Identifier: MIT
"""Tensors in Fortran expressions beside the same loops in Python.

The fastest call counts. It needs a build with the target bench_tensors.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness import machine
from harness.tables import page, table
from harness.turns import Effort, pivoted, rows
from harness.worker import workers

CASES = ("scope", "expression", "function", "training")
EFFORT = Effort(rounds=100)
HERE = Path(__file__).resolve().parent


def measure(chosen, keep):
    script = HERE / "network.py"
    commands = {
        "Fortran": [machine.program_of(chosen.build, "tensors", "bench_tensors"), script],
        "Python": [sys.executable, script],
    }
    effort = EFFORT.of(chosen.rounds)
    with machine.described() as found, workers(commands, machine.worker_environment(), machine.last_core()) as both:
        found["results"] = []
        for case in CASES:
            found["results"] += rows({"case": case}, {side: (worker, case) for side, worker in both.items()}, effort)
            keep(found)
    return found


def markdown(found):
    lines = []
    for (case,), times in pivoted(found["results"], ["case"]).items():
        ours, floor = times["Fortran"]["min"], times["Python"]["min"]
        lines.append((case, f"{ours:.2f} us", f"{floor:.2f} us", f"{ours - floor:+.2f} us", f"{ours / floor:.3f}"))
    head = ("loop", "Fortran", "Python", "difference", "ratio")
    return page("Tensors in Fortran expressions", found, table(head, lines))
