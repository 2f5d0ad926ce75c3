# SPDX-License-Identifier: MIT
"""A program to observe: what it is made of and which variables it gets, a test says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import warm

SCRIPT = """
import numpy

def ftn_pytorch_forward(x):
    return 2 * x

def ftn_pytorch_train(x, target):
    return False, float(abs(x - target).sum()) + 0.5

def fill(x, out):
    out[...] = 3 * x

def fails(x):
    raise ValueError("no such weather")

def crash(x):
    import ctypes
    ctypes.string_at(0)
"""

# What a launcher or a developer may have set must not reach the program.
FOREIGN = ("FTN_PYTORCH_", "OMPI_", "PMI_", "MV2_", "SLURM_", "PYTHONFAULTHANDLER")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script with NumPy, called weather.py: it starts without importing torch."""
    path = tmp_path / "weather.py"
    path.write_text(SCRIPT)
    return path


def _ended(done: subprocess.CompletedProcess, code: int) -> subprocess.CompletedProcess:
    """A process, if it has ended with ``code``."""
    assert done.returncode == code, done.stdout + done.stderr
    return done


def _run(command: list, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, **options)


def _run_cold(words: list, **options) -> subprocess.CompletedProcess:
    return _run([sys.executable, *words], **options)


@pytest.fixture
def run(build_dir: Path, tmp_path: Path):
    """run(*actions, NAME=value, ...): the finished program, see program.c; variables come without FTN_PYTORCH_."""

    def run(*actions, environment=None, code=0, program="diagnosis_program", **variables):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        wanted = {f"FTN_PYTORCH_{name}": str(value) for name, value in variables.items()}
        command = [build_dir / "tests" / "diagnosis" / program, *map(str, actions)]
        variables = {**inherited, "FTN_PYTORCH_PYTHON": sys.executable, **wanted, **(environment or {})}
        return _ended(_run(command, env=variables, cwd=tmp_path), code)

    return run


@pytest.fixture
def command():
    """command(*arguments): finished ``python -m ftn_pytorch``; torch is imported already unless it is ``cold``."""

    def command(*arguments, environment=None, code=0, cold=False, **options):
        package = Path(__file__).resolve().parents[2] / "python"
        variables = {**os.environ, "PYTHONPATH": str(package), **(environment or {})}
        words = ["-m", "ftn_pytorch", *map(str, arguments)]
        return _ended((_run_cold if cold else warm.run)(words, env=variables, **options), code)

    return command


@pytest.fixture
def saved_model(build_dir: Path, tmp_path: Path) -> Path:
    """A TorchScript file that doubles; the test is skipped where the direct path is not built."""
    if not list(build_dir.glob("lib*/libftn_pytorch_direct.so")):
        pytest.skip("the direct path is not built")
    torch = pytest.importorskip("torch")

    class Double(torch.nn.Module):
        def forward(self, x):
            return 2 * x

    path = tmp_path / "net.pt"
    torch.jit.save(torch.jit.script(Double()), str(path))
    return path
