# SPDX-License-Identifier: MIT
"""Wheels that `make wheel` has made, and environments with them."""

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from projects import run

WHEELS = os.environ.get("FTN_PYTORCH_WHEELS", "")
HERE_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def wheel_of(version: str) -> Path:
    found = list(Path(WHEELS).glob(f"ftn_pytorch-*-cp{version.replace('.', '')}-*.whl"))
    assert len(found) == 1, f"{WHEELS} has {len(found)} wheels for Python {version}"
    return found[0]


@dataclass
class Environment:
    """A virtual environment with the wheel."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        return next(self.folder.glob("lib/python3.*/site-packages"))

    @property
    def library(self) -> Path:
        return self.packages / "ftn_pytorch" / "lib"

    @property
    def active(self) -> dict[str, str]:
        """What activating it sets."""
        return {"VIRTUAL_ENV": str(self.folder), "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def make(folder: Path, python: object, *packages: object) -> Environment:
    environment = Environment(folder)
    run(python, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    if packages:
        pip = (sys.executable, "-m", "pip", "--python", environment.python, "install", "--quiet")
        run(*pip, *packages, cwd=folder.parent)
    return environment


def with_torch_of_tests(environment: Environment) -> Environment:
    """Much faster than installing it once more."""
    (environment.packages / "torch.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment
