# SPDX-License-Identifier: MIT
"""docs/commands.md and docs/tools.md: what the pages do with a script."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from pages import ROOT, blocks_of
from walkthrough import Walk, blocks_below

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "tools.md"
COMMANDS = ROOT / "docs" / "commands.md"


def without_numbers(text: str) -> list[str]:
    """The words of each line; times and sizes are those of the machine, and so is what a model adds to the memory."""
    lines = [re.sub(r"\d[\d.,]*( (us|ms|s|MB)\b)?", "#", line) for line in text.splitlines()]
    return [" ".join(line.split()) for line in lines]


@pytest.fixture
def walk(build_dir: Path, tmp_path: Path) -> Walk:
    """A reader with an installation."""
    home, folder = tmp_path / "home", tmp_path / "model"
    folder.mkdir()
    walk = Walk(folder, {"PATH": f"{home}/bin{os.pathsep}{os.environ['PATH']}"})
    walk.run("cmake", "--install", build_dir, "--prefix", home)
    return walk


def test_check(walk: Walk) -> None:
    blocks = blocks_below(COMMANDS, "check")
    shown = {block: after for block, after in zip(blocks, blocks[1:]) if not after.language}
    assert len(shown) == 3
    for block in blocks[:-1]:  # the last one is for calls that the reader has recorded
        walk.follow([block])
        if block in shown:
            printed = walk.run("bash", "-ec", block.text.splitlines()[-1])
            lines, wanted = without_numbers(printed)[1:], without_numbers(shown[block].text)[1:]
            for place, line in enumerate(wanted):
                if line.endswith("..."):  # the page leaves out its end
                    lines[place] = line if lines[place].startswith(line[:-3]) else lines[place]
            assert lines == wanted, "the first line may name the machine"
    walk.follow(blocks_below(PAGE, "Model Explorer"))
    assert (walk.folder / "closure.pt2").is_file()


def test_a_module_of_lightning_online_and_offline(walk: Walk) -> None:
    pytest.importorskip("lightning")
    walk.follow(blocks_below(PAGE, "Lightning"))
    program = """
import torch
from closure import *
for _ in range(100):
    x = torch.randn(64, 5)
    _, loss = ftn_pytorch_train(x, x.sum(1, keepdim=True))
assert loss < 0.5
replay.export("samples.npz")
import offline
assert torch.cat(offline.predicted).shape == offline.held_out[1].shape
"""
    packages = walk.folder.parent / "home" / "share" / "ftn_pytorch" / "python"
    walk.run("env", f"PYTHONPATH={packages}", sys.executable, "-c", program)
    assert (walk.folder / "closure.onnx").is_file()
    assert list((walk.folder / "run").rglob("metrics.csv"))


def test_the_commands_of_the_script_author(walk: Walk) -> None:
    page = ROOT / "docs" / "write-the-script.md"
    script = next(block for block in blocks_of(page) if block.language == "python")
    (walk.folder / "closure.py").write_text(script.text)
    walk.follow(blocks_below(page, "Work without the simulation")[:1])
    assert (walk.folder / "wind" / "wind.py").is_file()
    for target in ([], ["--target", "32x1"]):
        command = ["export", "closure.py", "--to", "recording", "--input", "32x3", "-o", f"{len(target)}.ftr"]
        walk.run("ftn_pytorch", *command, *target)
