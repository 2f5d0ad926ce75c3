# SPDX-License-Identifier: MIT
"""What ctest runs: ``check.py learns|restarts PROGRAM SCRIPT``."""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path


def run(folder, steps):
    """The last line of what the program prints, and the rows of its log without times."""
    done = subprocess.run([program, script, str(steps)], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    with open(folder / "run" / "log.csv") as file:
        rows = list(csv.DictReader(file))
    return done.stdout.splitlines()[-1], [{**row, "python_share": ""} for row in rows]


def learns(folder):
    """The loss falls, and the forecast is better than one without the closure."""
    line, rows = run(folder, 20_000)
    losses = [float(row["loss"]) for row in rows]
    first, last = sum(losses[:20]) / 20, sum(losses[-20:]) / 20
    assert last < first / 3, f"the loss was {first} and became {last}"
    found = [float(part.split()[-1]) for part in line.split(",")]
    assert found[0] < found[1] / 2, line


def restarts(folder):
    """Two halves give the numbers of a run that is not interrupted, bit for bit."""
    whole, halves = folder / "whole", folder / "halves"
    whole.mkdir()
    halves.mkdir()
    wanted = run(whole, 4000)
    run(halves, 2000)
    found = run(halves, 4000)
    assert found == wanted, f"{found[0]} is not {wanted[0]}"


if __name__ == "__main__":
    check, program, script = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        {"learns": learns, "restarts": restarts}[check](Path(folder))
