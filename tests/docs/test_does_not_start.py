# SPDX-License-Identifier: MIT
"""docs/does-not-start.md: each message that can be provoked here is what the library says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from pages import ROOT
from walkthrough import blocks_below

PAGE = ROOT / "docs" / "does-not-start.md"


def shown(heading: str) -> str:
    """The message of a section."""
    return next(block.text for block in blocks_below(PAGE, heading) if not block.language)


def general(text: str) -> str:
    """Without the paths and versions of a machine."""
    return re.sub(r"3\.\d+(\.\d+)?", "3.N", re.sub(r"/[\w./-]*\w", "PATH", text))


@pytest.fixture
def run(build_dir: Path, tmp_path: Path):
    """Standard error of the first program with these variables, as far as a message of the page goes."""
    shutil.copy(ROOT / "examples" / "first" / "first.py", tmp_path)
    program = build_dir / "examples" / "first" / "first"
    if not program.exists():
        pytest.skip("the examples are not built")
    ours = {"VIRTUAL_ENV", "CONDA_PREFIX", "FTN_PYTORCH_PYTHON", "PYTHONHOME", "PYTHONPATH"}
    left = {name: value for name, value in os.environ.items() if name not in ours}

    def run(**variables: str) -> str:
        environment = left | {"GFORTRAN_ERROR_BACKTRACE": "n"} | variables
        done = subprocess.run([program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stderr

    return run


def environment_of(folder: Path) -> Path:
    """A virtual environment without packages, of the installation that the build has."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def says(heading: str, printed: str) -> bool:
    return general(printed).startswith(general(shown(heading)))


def test_no_such_python(run) -> None:
    assert says("No such Python", run(FTN_PYTORCH_PYTHON="/opt/old/bin/python"))


def test_a_shim(run, tmp_path: Path) -> None:
    shim = tmp_path / "shim"
    shim.write_text('#!/bin/sh\nexec python3 "$@"\n')
    shim.chmod(0o755)
    assert says("A shim", run(FTN_PYTORCH_PYTHON=str(shim)))


def test_another_version(run, tmp_path: Path) -> None:
    executable = tmp_path / "venv" / "bin" / "python"
    executable.parent.mkdir(parents=True)
    shutil.copy("/bin/true", executable)
    other = f"{sys.version_info[0]}.{sys.version_info[1] + 1}.4"
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {other}\n")
    assert says("Another version of Python", run(FTN_PYTORCH_PYTHON=str(executable)))


def test_pythonhome(run, tmp_path: Path) -> None:
    assert says("PYTHONHOME", run(PYTHONHOME=str(tmp_path)))


def test_another_libpython(run, tmp_path: Path) -> None:
    name = sysconfig.get_config_var("INSTSONAME")
    shutil.copy(Path(sysconfig.get_config_var("LIBDIR")) / name, tmp_path)
    assert says("Another libpython", run(LD_LIBRARY_PATH=str(tmp_path)))


def test_a_package_is_missing(run, tmp_path: Path) -> None:
    bare = environment_of(tmp_path / "bare")
    assert says("A package is missing", run(FTN_PYTORCH_PYTHON=str(bare / "bin" / "python")))


def test_the_environment_is_not_used(run, tmp_path: Path) -> None:
    bare = environment_of(tmp_path / "bare")
    assert says("The environment is not used", run(VIRTUAL_ENV=str(bare)))


@pytest.mark.parametrize(
    ("heading", "file"),
    [("libpython is not found", "src/python/python_library.cpp"), ("A static Python", "cmake/FtnPytorchPython.cmake")],
)
def test_other_messages_are_in_the_sources(heading: str, file: str) -> None:
    """What needs a broken installation: the words up to the first colon or full stop behind the path."""
    words = re.search(r"the part of .*?loaded|has no shared libpython.*?embedded", shown(heading))
    assert words and words[0] in re.sub(r'"\s*"', "", (ROOT / file).read_text())
