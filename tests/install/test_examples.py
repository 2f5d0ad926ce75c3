# SPDX-License-Identifier: MIT
"""Examples against an installed copy: each is built by the commands of its page, with the function of the package."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from mpi_environment import MPI_ENVIRONMENT
from projects import ROOT, attempt, run

EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/CMakeLists.txt"))
NOT_BUILT = re.compile(r"is not built: (.+)")


def copied(prefix: Path, example: str, folder: Path) -> Path:
    return shutil.copytree(prefix / "share" / "ftn_pytorch" / "examples" / example, folder / example)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_it_is_built_as_its_page_says(example: str, prefix: Path, tmp_path: Path) -> None:
    folder = copied(prefix, example, tmp_path)
    block = re.search(r"^```sh\n(.+?)^```", (folder / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for line in block[1].splitlines() if line.startswith("cmake")]
    assert len(lines) == 2
    done = attempt("bash", "-ec", "\n".join(lines).replace("<prefix of ftn_pytorch>", str(prefix)), cwd=folder)
    said = " ".join((done.stdout + done.stderr).split())
    if missing := NOT_BUILT.search(said):
        pytest.skip(missing[1])
    assert done.returncode == 0, said
    for program in re.findall(
        r"^ftn_pytorch_add_program\((\w+)", (folder / "CMakeLists.txt").read_text(), re.MULTILINE
    ):
        assert (folder / "build" / program).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_data_parallel_training_over_each_mpi(mpi: str, prefix: Path, tmp_path: Path) -> None:
    """Four ranks, of which each has a part of the domain, average by DistributedDataParallel."""
    wrapper, launcher = shutil.which(f"mpifort.{mpi}"), shutil.which(f"mpiexec.{mpi}")
    if not (wrapper and launcher):
        pytest.skip(f"there is no {mpi}")
    folder = copied(prefix, "mpi_training", tmp_path)
    options = (f"-DCMAKE_PREFIX_PATH={prefix}", f"-DMPI_Fortran_COMPILER={wrapper}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", *options, cwd=folder)
    run("cmake", "--build", folder / "build", cwd=folder)
    environment = MPI_ENVIRONMENT | {"FTN_PYTORCH_PYTHON": sys.executable}
    said = run(launcher, "-n", "4", folder / "build" / "mpi_training", "ddp.py", "out", cwd=folder, **environment)
    assert said.count("PASSED") == 3 and "FAILED" not in said


PROJECT = """cmake_minimum_required(VERSION 3.20)
project(mine LANGUAGES C Fortran)
find_package(ftn_pytorch REQUIRED)
"""


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("ftn_pytorch_add_program(mine)", r"ftn_pytorch_add_program\(mine .* SOURCES <file>\.\.\..*was given"),
        ("ftn_pytorch_add_program(mine first.f90)", "was given first.f90"),
        ("ftn_pytorch_add_program(mine MPI SOURCES first.f90)", "mine is not built: no MPI with module mpi_f08"),
    ],
    ids=["nothing", "no keyword", "no MPI"],
)
def test_a_project_that_cannot_be_configured(lines: str, wrong: str, prefix: Path, tmp_path: Path) -> None:
    """A part of another project goes on without a program for which there is no MPI."""
    (tmp_path / "CMakeLists.txt").write_text(PROJECT + lines + "\n")
    options = (f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON", "-G", "Ninja")
    done = attempt("cmake", "-S", ".", "-B", "build", *options, cwd=tmp_path)
    assert done.returncode != 0 and re.search(wrong, " ".join(done.stderr.split()))
    if "MPI" in lines:
        part = tmp_path / "part"
        part.mkdir()
        (tmp_path / "CMakeLists.txt").rename(part / "CMakeLists.txt")
        (tmp_path / "CMakeLists.txt").write_text(PROJECT + "add_subdirectory(part)\n")
        run("cmake", "-S", ".", "-B", "whole", *options, cwd=tmp_path)
