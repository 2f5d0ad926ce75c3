# SPDX-License-Identifier: MIT
"""The projects of users in this folder, and how they are built and run."""

import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPT = HERE / "script.py"
CACHE = Path(tempfile.mkdtemp(prefix="ftn_pytorch_cache_"))
"""For what builds keep for the next one, in place of that of the user."""
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)


def attempt(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run a command with no variable set that could help it."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "FC", "LANG") if name in os.environ}
    kept["XDG_CACHE_HOME"] = str(CACHE)
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


def install(build_dir: Path, prefix: Path) -> Path:
    """Install what a build tree has."""
    run("cmake", "--install", build_dir, "--prefix", prefix, cwd=prefix.parent)
    return prefix
