# SPDX-License-Identifier: MIT
"""What the Python tests of all folders share."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """Build tree with programs to run: FTN_PYTORCH_BUILD_DIR, or that of the preset dev."""
    folder = Path(os.environ.get("FTN_PYTORCH_BUILD_DIR", ROOT / "build" / "dev"))
    if not (folder / "CMakeCache.txt").is_file():
        pytest.fail(f"{folder} is no build tree: build the preset dev, or set FTN_PYTORCH_BUILD_DIR")
    return folder


@pytest.fixture(scope="session")
def cache(build_dir: Path) -> dict[str, str]:
    """Variables of CMakeCache.txt."""
    lines = (build_dir / "CMakeCache.txt").read_text().splitlines()
    entries = (line.partition("=") for line in lines if "=" in line and not line.startswith(("#", "//")))
    return {name.partition(":")[0]: value for name, _, value in entries}


@pytest.fixture(scope="session")
def is_gnu_fortran(cache: dict[str, str]) -> bool:
    """Whether the Fortran compiler of the build is gfortran, whatever it is called."""
    compiler = cache.get("CMAKE_Fortran_COMPILER")
    if not compiler:
        return False
    return "GNU Fortran" in subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
