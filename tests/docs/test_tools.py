# SPDX-License-Identifier: MIT
"""docs/tools.md: checking and measuring a script, as the page does it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pages import ROOT
from walkthrough import Walk, blocks_below

PAGE = ROOT / "docs" / "tools.md"


def without_numbers(text: str) -> list[str]:
    """The words of each line; times and sizes are those of the machine, and so is what a model adds to the memory."""
    lines = [re.sub(r"\d[\d.,]*( (us|ms|s|MB)\b)?", "#", line) for line in text.splitlines()]
    return [" ".join(line.split()) for line in lines]


def test_check_and_bench(build_dir: Path, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "model"
    folder.mkdir()
    walk = Walk(folder, {"PATH": f"{home}/bin{os.pathsep}{os.environ['PATH']}"})
    walk.run("cmake", "--install", build_dir, "--prefix", home)
    for heading in ("Check a script", "Measure a script"):
        blocks = blocks_below(PAGE, heading)
        walk.follow(blocks)
        command, shown = (block.text for block in blocks[-2:])
        printed = walk.run("bash", "-ec", command)
        assert without_numbers(printed)[1:] == without_numbers(shown)[1:], "the first line may name the machine"
    walk.follow(blocks_below(PAGE, "Model Explorer"))
    assert (folder / "closure.pt2").is_file()
