# SPDX-License-Identifier: MIT
"""``make first`` and ``make demo``, the first things that anybody runs, as in a fresh clone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """The files of this tree that git would clone."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.splitlines()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("goal", ["first", "demo"])
def test_the_first_program_gives_no_warning(goal, clone) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("FTN_PYTORCH_")}
    done = subprocess.run(
        ["make", goal], cwd=clone, env={**variables, "FTN_PYTORCH_PYTHON": sys.executable},
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert [line for line in told.splitlines() if "warning" in line.lower()] == []
