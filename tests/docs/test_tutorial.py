# SPDX-License-Identifier: MIT
"""docs/tutorial.md, from its first to its last block."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import pytest
from pages import ROOT, blocks_of
from walkthrough import Walk

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "tutorial.md"


def logged(folder: Path) -> list[dict[str, str]]:
    """The rows of the log, without times."""
    with open(folder / "run" / "log.csv") as file:
        return [{**row, "python_share": ""} for row in csv.DictReader(file)]


def test_tutorial(build_dir: Path, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "model"
    folder.mkdir()
    walk = Walk(folder, {"PATH": f"{home}/bin{os.pathsep}{os.environ['PATH']}"})
    walk.run("cmake", "--install", build_dir, "--prefix", home)
    compared = walk.follow(blocks_of(PAGE))
    alone, _, learning, trained, returned = (float(text.split()[-1]) for text in compared)
    assert learning == alone, "what the model computes is what it was"
    assert trained == pytest.approx(alone, rel=0.02) and returned == pytest.approx(alone, rel=0.02)
    assert {"run.png", "run.svg"} <= set(os.listdir(folder / "run"))
    rows = logged(folder)
    # 1000 steps were without Python, which counts and logs.
    assert [int(row["step"]) for row in rows] == list(range(1, 4001))
    held_out = [float(row["held_out"]) for row in rows if row["held_out"]]
    assert held_out[-1] < held_out[0] / 100
    # As the page says, from the beginning; now without an interruption.
    shutil.rmtree(folder / "checkpoints")
    walk.run(folder / "build" / "model", "3000")
    assert logged(folder) == rows[:3000]
