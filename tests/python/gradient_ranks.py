# SPDX-License-Identifier: MIT
"""Ranks of a process group as processes that run one program each."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import ftn_pytorch


def run(size, folder, program):
    """What the ranks print, JSON that is the same on all. They get their number, ``size``, and a file to meet in."""
    package, build = str(Path(ftn_pytorch.__file__).parents[1]), os.environ.get("FTN_PYTORCH_BUILD_DIR", "")
    environment = {**os.environ, "PYTHONPATH": package, "ftn_pytorch_ROOT": build}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(size), str(folder / f"store{size}")], stdout=subprocess.PIPE, env=environment
        )
        for rank in range(size)
    ]
    try:
        answers = [rank.communicate(timeout=600)[0].decode() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert all(rank.returncode == 0 for rank in ranks)
    assert len(set(answers)) == 1, "the ranks print the same"
    return json.loads(answers[0])
