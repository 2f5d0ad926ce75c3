# SPDX-License-Identifier: MIT
"""The projects of users in this folder, and how they are built and run."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPT = HERE / "script.py"


def attempt(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run a command with no variable set that could help it."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "FC", "LANG") if name in os.environ}
    words = list(map(str, command))
    return subprocess.run(words, cwd=cwd, env=kept | environment, capture_output=True, text=True)


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Standard output of a command that must succeed."""
    done = attempt(*command, cwd=cwd, **environment)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def configure(project: str, folder: Path, *options: str, **environment: str) -> str:
    """Configure a project of this folder; what CMake says."""
    command = ("cmake", "-S", HERE / project, "-B", folder / "build", "-G", "Ninja", *options)
    return run(*command, cwd=folder, **environment)


def build(project: str, folder: Path, *options: str, **environment: str) -> Path:
    """Configure and build a project of this folder; the program."""
    configure(project, folder, *options, **environment)
    run("cmake", "--build", folder / "build", "--target", "program", cwd=folder, **environment)
    return folder / "build" / "program"
