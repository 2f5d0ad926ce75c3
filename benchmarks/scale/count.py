# SPDX-License-Identifier: MIT
"""What a program asks file systems: operations on paths, counted by strace."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from .model import Counts

_PATH = re.compile(r'"([^"]+)"')
_OF_THE_NODE = ("/lib", "/usr", "/etc", "/proc", "/sys", "/dev")
"""Folders that each node has of its own."""


def counts(command: Sequence[object], environment: Mapping[str, str]) -> Counts:
    """Of the third run of a program, its CPU time of the second; the first one writes bytecode and fills caches.

    RuntimeError with what it wrote if it ends with another code than 0.
    """
    words = [*map(str, command)]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        run(words, environment)
        cpu = run(words, environment)
        tool = ["strace", "-f", "-qq", "-e", "trace=%file", "-e", "signal=none", "-o", str(trace)]
        run([*tool, *words], environment)
        return of_trace(trace.read_text(), cpu)


def of_trace(text: str, cpu: float) -> Counts:
    """From the lines of strace."""
    found = [(path[1], line) for line in text.splitlines() if (path := _PATH.search(line)) and "getcwd(" not in line]
    shared = [(path, line) for path, line in found if not path.startswith(_OF_THE_NODE)]
    opens = sum("open" in line.partition("(")[0] for _, line in shared)
    return Counts(len(shared), opens, len({path for path, _ in shared}), round(cpu, 2))


def run(command: Sequence[object], environment: Mapping[str, str]) -> float:
    """Run a program, in its own time; seconds of CPU of it and its processes. RuntimeError if it fails."""
    words = [*map(str, command)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environment_of(python: str) -> dict[str, str]:
    """Of a program: what launchers and developers have set is left out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FTN_", "OMPI_", "PYTHON"))}
    return {**kept, "FTN_PYTORCH_PYTHON": python, "OMP_NUM_THREADS": "1"}
