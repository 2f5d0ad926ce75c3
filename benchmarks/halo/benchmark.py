# SPDX-License-Identifier: MIT
"""Halos by ftn_pytorch.halo beside four MPI_Sendrecv by hand, and beside a call that returns its inputs.

run.py halo --grid 2x2 --mpirun "mpirun --oversubscribe"

The time of a turn is that of the slowest rank, and the fastest turn counts. It needs a build with the target
bench_halo.
"""

from __future__ import annotations

from pathlib import Path

from harness import machine
from harness.tables import page, table
from harness.turns import Effort, pivoted, rows
from harness.worker import numbers, workers

SIZES = ((24, 12, 3, 5), (96, 96, 3, 7), (96, 96, 20, 7), (256, 256, 10, 7))
LABELS = ("nx", "ny", "fields", "halo", "messages", "kB")
WAYS = {"hand": "by hand, us", "call": "a call, us", "without": "without, us"}
EFFORT = Effort(rounds=30)
SCRIPT = Path(__file__).resolve().parent / "halo.py"


def options(parser):
    parser.add_argument("--grid", default="2x1", metavar="PXxPY", help="ranks along x and y (default: %(default)s)")
    parser.add_argument("--mpirun", default="mpirun --bind-to core", help="what starts ranks (default: %(default)s)")


def measure(chosen, keep):
    px, py = map(int, chosen.grid.split("x"))
    program = machine.program_of(chosen.build, "halo", "bench_halo")
    command = [*chosen.mpirun.split(), "-n", px * py, program, SCRIPT, px, py]
    effort = EFFORT.of(chosen.rounds)
    with machine.described() as found, workers({"ranks": command}, machine.worker_environment()) as started:
        found |= {"grid": chosen.grid, "results": []}
        ranks = started["ranks"]
        for size in SIZES:
            messages, sent = numbers(ranks.ask(f"open {' '.join(map(str, size))}", "opened"), int)
            labels = dict(zip(LABELS, (*size, messages, sent / 1e3)))
            found["results"] += rows(labels, {way: (ranks, way) for way in WAYS}, effort)
            keep(found)
    return found


def markdown(found):
    lines = []
    for labels, times in pivoted(found["results"], LABELS).items():
        fastest = [times[way]["min"] for way in WAYS]
        ratio = fastest[1] / fastest[0]
        lines.append((*labels[:-1], f"{labels[-1]:.1f}", *(f"{value:.1f}" for value in fastest), f"{ratio:.1f}"))
    return page(f"Halos, {found['grid']} ranks", found, table((*LABELS, *WAYS.values(), "ratio"), lines))
