# SPDX-License-Identifier: MIT
"""Ranks of a process group as processes that run one program each."""

import json
import os
import subprocess
import textwrap

import warm

import program


def run(size, folder, code):
    """What the ranks print, JSON that is the same on all. They get their number, ``size``, and a file to meet in."""
    build = os.environ.get("FTN_PYTORCH_BUILD_DIR", "")
    environment = {**os.environ, "PYTHONPATH": program.PYTHONPATH, "ftn_pytorch_ROOT": build}
    code, store = textwrap.dedent(code), folder / f"store{size}"
    commands = [warm.command(["-c", code, rank, size, store]) for rank in range(size)]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for command in commands]
    try:
        answers = [rank.communicate(timeout=600)[0].decode() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert all(rank.returncode == 0 for rank in ranks)
    assert len(set(answers)) == 1, "the ranks print the same"
    return json.loads(answers[0])
