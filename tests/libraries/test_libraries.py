# SPDX-License-Identifier: MIT
"""Programs that are linked with a BLAS, HDF5 or NetCDF of their own: each path gives the numbers of a program that is
not, or is refused with the file of the library."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import torch

def numbers(x):
    found = []
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        a = (x * (1 - 0.5j) if dtype.is_complex else x).to(dtype)
        for y in (a @ a[0], a @ a, torch.bmm(a.view(4, 10, 40), a.view(4, 40, 10))):
            found.append(torch.view_as_real(y.sum() + 0j))
        found += [torch.view_as_real(torch.dot(a[0], a[1]) + 0j), torch.view_as_real(torch.vdot(a[2], a[3]) + 0j)]
    return torch.cat([part.to(torch.float64) for part in found])

def ftn_pytorch_forward(x):
    return numbers(x)
"""
STATUS = " 32 "  # FTN_PYTORCH_ERR_LIBRARY
LATE = "def ftn_pytorch_forward(x):\n    from numbers_by_torch import numbers\n    return numbers(x)\n"
PATHS = ("script", "recorded", "model", "python", "ftr", "ftr by python", "tensors")


@pytest.fixture(scope="module")
def folder(build_dir: Path) -> Path:
    folder = build_dir / "tests" / "libraries"
    if not (folder / "libraries_none").is_file():
        pytest.skip("no Fortran in this build")
    return folder


@pytest.fixture(scope="module")
def has_plugin(build_dir: Path) -> bool:
    return bool(list(build_dir.glob("lib*/libftn_pytorch_direct.so")))


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    """run(library, words, allocator=True, NAME=value): lines of the program that is linked with a library."""
    cwd = tmp_path_factory.mktemp("libraries")

    def run(library: str, *words: str, allocator: bool = False, code: int = 0, **variables: str) -> list[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FTN_PYTORCH", "LD_"))}
        preload = {"LD_PRELOAD": str(folder / "liblibraries_allocator.so")} if allocator else {}
        environment = {**kept, "FTN_PYTORCH_PYTHON": sys.executable, "OMP_NUM_THREADS": "1", **preload, **variables}
        command = [folder / f"libraries_{library}", *words]
        options = {"env": environment, "cwd": cwd, "timeout": 300, "check": False}
        done = subprocess.run(command, capture_output=True, text=True, **options)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout.splitlines()

    run.cwd = cwd
    return run


@pytest.fixture(scope="module")
def paths(run, has_plugin: bool) -> dict[str, tuple[str, str]]:
    """What the program is told of each path, and files for it, made by a program without such libraries."""
    torch = pytest.importorskip("torch")
    (run.cwd / "closure.py").write_text(SCRIPT)
    (run.cwd / "numbers_by_torch.py").write_text(SCRIPT)
    (run.cwd / "late.py").write_text(LATE)
    space: dict = {}
    exec(SCRIPT, space)
    x = torch.ones(40, 40, dtype=torch.float64)

    class Numbers(torch.nn.Module):
        def forward(self, x):
            return space["numbers"](x)

    torch.jit.trace(Numbers(), x).save(str(run.cwd / "numbers.pt"))
    words = {"script": ("script", "closure.py"), "python": ("python", "numbers.pt"), "tensors": ("tensors", "-")}
    if has_plugin:
        words |= {"recorded": ("recorded", "closure.py"), "model": ("direct", "numbers.pt")}
        words |= {"ftr": ("direct", "closure.py.ftr"), "ftr by python": ("python", "closure.py.ftr")}
        run("none", *words["recorded"])
    return words


@pytest.fixture(scope="module")
def right(run, paths) -> dict[str, list[str]]:
    """The numbers of each path in a program without such libraries: those of plain Python."""
    return {path: run("none", *words) for path, words in paths.items()}


def test_paths_agree(right: dict[str, list[str]]) -> None:
    words = {path: lines[-1].split()[1:] for path, lines in right.items() if path != "tensors"}
    assert all(each == words["script"] and len(each) == 40 for each in words.values()), words


@pytest.mark.parametrize("library", ["wrong", "dots", "wide", "right"])
@pytest.mark.parametrize("path", PATHS)
def test_own_numbers(run, paths, right, library: str, path: str) -> None:
    if path not in paths:
        pytest.skip("the direct path is not built")
    assert run(library, *paths[path]) == right[path]
