# SPDX-License-Identifier: MIT
"""A checkout wherever users put it: its path may have a space, a comma and a quote, and is called like the package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from projects import ROOT, run

# In place of a compiler: an object with a main program and nothing else.
EMPTY = """#!/bin/sh
while [ $# -gt 1 ]; do
  case $1 in
    -o) cp "{empty}" "$2" ;;
    -MF) : >"$2" ;;
  esac
  shift
done
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what git knows, and of what it is yet to be told."""
    folder = tmp_path / "it's a, b" / "ftn_pytorch"
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard", "--deduplicate"], cwd=ROOT, check=True, capture_output=True
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def test_the_environment_is_written_and_read(checkout: Path) -> None:
    python = checkout / ".venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", python.parents[1], cwd=checkout)
    (checkout / "cmake" / "requirements.txt").write_text("cmake\n")  # a program on the path will do
    run("cmake/setup.sh", "demo", cwd=checkout, FTN_PYTORCH_PYTHON=str(python))
    lines = run("bash", "-c", '. build/environment; echo "$FTN_PYTORCH_PYTHON"; command -v python', cwd=checkout)
    assert lines.splitlines() == [str(python)] * 2


def test_libraries_are_linked(checkout: Path, tmp_path: Path) -> None:
    """By the commands of the build; compiling is left out, since it would take minutes."""
    launcher, empty = tmp_path / "launcher", tmp_path / "empty.o"
    source = tmp_path / "empty.c"
    source.write_text("__attribute__((weak)) int main(void) { return 0; }\n")
    run("cc", "-fPIC", "-c", source, "-o", empty, cwd=tmp_path)
    launcher.write_text(EMPTY.format(empty=empty))
    launcher.chmod(0o755)
    parts = [f"-DFTN_PYTORCH_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "BENCHMARKS")]
    options = (*parts, f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}")
    run("cmake", "-S", ".", "-B", "build", "-G", "Ninja", *options, cwd=checkout)
    known = run("cmake", "--build", "build", "--target", "help", cwd=checkout)
    targets = [f"ftn_pytorch_{part}" for part in ("core", "python", "node", "direct", "recording")]
    built = [target for target in targets if f"\n{target}: phony" in known]
    assert len(built) in (3, 5)  # with torch, or without
    run("cmake", "--build", "build", "--target", *built, cwd=checkout)


@pytest.mark.slow
def test_the_first_command_of_the_readme(checkout: Path) -> None:
    assert "loss" in run("make", "first", cwd=checkout, FTN_PYTORCH_PYTHON=sys.executable)
