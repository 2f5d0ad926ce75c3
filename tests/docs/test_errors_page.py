# SPDX-License-Identifier: MIT
"""examples/errors/README.md shows what the example prints; docs/errors.md counts its mistakes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pages import ROOT
from walkthrough import blocks_below

EXAMPLE = ROOT / "examples" / "errors"


def general(text: str) -> list[str]:
    """Without line numbers, marks below code, the version of Python, and the reason why there is no GPU 99."""
    text = re.sub(r"\bline \d+", "line N", re.sub(r"Python 3\.\d+", "Python 3.N", text))
    text = re.sub(r"(device='cuda:99' cannot be used: ).*", r"\1...", text)
    return [line for line in text.splitlines() if not re.fullmatch(r"[ ^~]*", line)]


def test_the_example_prints_what_its_page_shows(build_dir: Path, tmp_path: Path) -> None:
    program = build_dir / "examples" / "errors" / "errors"
    if not program.exists():
        pytest.skip("the examples are not built")
    folder = shutil.copytree(EXAMPLE, tmp_path / "errors", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run([program, "."], cwd=folder, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.replace(str(folder.resolve()), "<folder>").replace(str(folder), "<folder>")
    shown = next(block.text for block in blocks_below(EXAMPLE / "README.md", "Expected output") if not block.language)
    assert general(printed) == general(shown)


def test_the_page_counts_the_mistakes() -> None:
    count = re.search(r"This program makes (\d+) mistakes", (EXAMPLE / "README.md").read_text())
    assert count and re.search(rf"makes\s+{count[1]} mistakes", (ROOT / "docs" / "errors.md").read_text())
