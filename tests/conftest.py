# SPDX-License-Identifier: MIT
"""What the Python tests of all folders share."""

import subprocess
from pathlib import Path

import pytest
from build_tree import build_folder, cmake_cache


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """Build tree with programs to run: FTN_PYTORCH_BUILD_DIR, or that of the preset dev."""
    folder = build_folder()
    if not (folder / "CMakeCache.txt").is_file():
        pytest.fail(f"{folder} is no build tree: build the preset dev, or set FTN_PYTORCH_BUILD_DIR")
    return folder


@pytest.fixture(scope="session")
def cache(build_dir: Path) -> dict[str, str]:
    """Variables of CMakeCache.txt."""
    return cmake_cache(build_dir)


@pytest.fixture(scope="session")
def is_gnu_fortran(cache: dict[str, str]) -> bool:
    """Whether the Fortran compiler of the build is gfortran, whatever it is called."""
    compiler = cache.get("CMAKE_Fortran_COMPILER")
    if not compiler:
        return False
    return "GNU Fortran" in subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
