# SPDX-License-Identifier: MIT
"""docs/tutorial.md, from its first to its last block: files are written, commands run, what they print is compared.

The line above a file ends with its name between backticks and a colon. Blocks of ``sh`` run in that folder.
A block without a language is what the commands before it print; its numbers may differ by a tenth.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pages import RUN_PAGES, Block, blocks_of

(PAGE,) = RUN_PAGES


def name_of(block: Block) -> str:
    above = PAGE.read_text().splitlines()[: block.line - 1]
    line = next(line for line in reversed(above) if line)
    found = re.search(r"`([\w.]+)`:$", line)
    assert found, f"{PAGE.name}:{block.line}: which file is this?"
    return found[1]


def words(text: str) -> list[str | float]:
    return [float(word) if re.fullmatch(r"-?\d+\.\d+", word) else word for word in text.split()]


def assert_printed(found: str, shown: str) -> None:
    assert len(words(found)) == len(words(shown)), found
    for one, other in zip(words(found), words(shown)):
        assert one == (pytest.approx(other, rel=0.1) if isinstance(other, float) else other), found


def logged(folder: Path) -> list[dict[str, str]]:
    """The rows of the log, without times."""
    with open(folder / "run" / "log.csv") as file:
        return [{**row, "python_share": ""} for row in csv.DictReader(file)]


def test_tutorial(build_dir: Path, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "model"
    folder.mkdir()
    environment = {name: text for name, text in os.environ.items() if not name.startswith("FTN_PYTORCH_")}

    def run(*command: object) -> str:
        done = subprocess.run(
            list(map(str, command)), cwd=folder, env=environment | {"HOME": str(home)}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run("cmake", "--install", build_dir, "--prefix", home / "ftn_pytorch")
    printed, compared = "", []
    for block in blocks_of(PAGE):
        if block.language == "sh":
            printed = run("bash", "-ec", block.text)
        elif block.language:
            (folder / name_of(block)).write_text(block.text)
        else:
            lines = len(block.text.splitlines())
            compared.append("\n".join(printed.splitlines()[-lines:]))
            assert_printed(compared[-1], block.text)
    alone, _, learning, trained = (float(text.split()[-1]) for text in compared)
    assert learning == alone, "what the model computes is what it was"
    assert trained == pytest.approx(alone, rel=0.02)
    assert {"run.png", "run.svg"} <= set(os.listdir(folder / "run"))
    rows = logged(folder)
    assert [int(row["step"]) for row in rows] == list(range(1, 3001))
    held_out = [float(row["held_out"]) for row in rows if row["held_out"]]
    assert held_out[-1] < held_out[0] / 100
    # As the page says, to learn again; now without an interruption.
    (folder / "radiation.pt").unlink()
    shutil.rmtree(folder / "checkpoints")
    run(folder / "build" / "model", "3000")
    assert logged(folder) == rows
