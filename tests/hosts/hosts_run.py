# SPDX-License-Identifier: MIT
"""What the tests of all hosts share: how they are built and started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from mpi_environment import MPI_ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
# Checkouts of versions of ComIn
COMIN = [Path(each).resolve() for each in os.environ.get("FTN_PYTORCH_COMIN_SOURCE", "").split(os.pathsep) if each]


def run(*command: object, folder: Path | None = None) -> None:
    """Builds. What it says is shown where it fails."""
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def start(ranks: int, folder: Path, *command: object, expect: int = 0) -> tuple[str, str]:
    """Standard output and error of a host. expect: 0, or anything else where it must fail."""
    environment = {**os.environ, **MPI_ENVIRONMENT, "OMP_NUM_THREADS": "1"}
    whole = [*map(str, ("mpirun", "-n", ranks, *command))]
    done = subprocess.run(whole, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode == 0) == (expect == 0), done.stdout + done.stderr
    return done.stdout, done.stderr


def esmx_builder(esmf: str) -> Path:
    """ESMX_Builder of the ESMF that ``esmf``, its esmf.mk, describes."""
    folder = next(line for line in Path(esmf).read_text().splitlines() if line.startswith("ESMF_APPSDIR="))
    builder = Path(folder.partition("=")[2].strip()) / "ESMX_Builder"
    if not builder.exists():
        pytest.skip("this ESMF has no ESMX_Builder")
    return builder
