# SPDX-License-Identifier: MIT
"""Programs that are linked with a BLAS, HDF5 or NetCDF of their own: each path gives the numbers of a program that is
not, or is refused with the file of the library."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import warm

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
LATE = "def ftn_pytorch_forward(x):\n    from closure import numbers\n    return numbers(x)\n"
READER = """
import torch, sys
sys.path.append({folder!r})
import reader
def ftn_pytorch_forward(x):
    return torch.tensor(20 * reader.whose(), dtype=torch.float64)
"""
ALLOCATOR = {"preload": "allocator"}
SWITCHED_OFF = {"FTN_PYTORCH_DEEPBIND": "0"}


@pytest.fixture(scope="module")
def folder(build_dir: Path) -> Path:
    folder = build_dir / "tests" / "libraries"
    if not (folder / "libraries_none").is_file():
        pytest.skip("no Fortran in this build")
    return folder


class Program:
    """Runs the program that is linked with a library, in a folder with the files of all paths."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        self.words: dict[str, tuple[str, str]] = {}

    def run(self, library: str, paths, **options: str):
        """The lines for each of ``paths``, and what was written to standard error."""
        return self.start(f"libraries_{library}", *(word for path in paths for word in self.words[path]), **options)

    def start(self, name: str, *words: str, preload: str = "", **variables: str):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FTN_PYTORCH", "LD_"))}
        preloaded = {"LD_PRELOAD": str(self.programs / f"liblibraries_{preload}.so")} if preload else {}
        environment = {**kept, "FTN_PYTORCH_PYTHON": sys.executable, "OMP_NUM_THREADS": "1", **preloaded, **variables}
        options = {"env": environment, "cwd": self.folder, "timeout": 600, "check": False}
        done = subprocess.run([self.programs / name, *words], capture_output=True, text=True, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines(), done.stderr


@pytest.fixture(scope="module")
def program(folder: Path, build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    torch = pytest.importorskip("torch")
    program = Program(folder, tmp_path_factory.mktemp("libraries"))
    files = {"closure.py": SCRIPT, "late.py": LATE, "reader_script.py": READER.format(folder=str(folder))}
    for name, text in files.items():
        (program.folder / name).write_text(text)
    space: dict = {}
    exec(SCRIPT, space)

    class Numbers(torch.nn.Module):
        def forward(self, x):
            return space["numbers"](x)

    traced = torch.jit.trace(Numbers(), torch.ones(40, 40, dtype=torch.float64))
    traced.save(str(program.folder / "numbers.pt"))
    program.words = {"script": ("script", "closure.py"), "by python": ("python", "numbers.pt")}
    program.words |= {
        "late": ("script", "late.py"),
        "node": ("node", "closure.py"),
        "reader": ("script", "reader_script.py"),
    }
    program.words |= {"tensors": ("tensors", "-")}
    if list(build_dir.glob("lib*/libftn_pytorch_direct.so")):
        program.words |= {"recorded": ("recorded", "closure.py"), "direct": ("direct", "numbers.pt")}
        program.words |= {"ftr": ("direct", "closure.py.ftr"), "ftr by python": ("python", "closure.py.ftr")}
        program.run("none", ["recorded"])
    return program


@pytest.fixture(scope="module")
def paths(program: Program) -> list[str]:
    return [path for path in program.words if path not in ("late", "node", "reader")]


@pytest.fixture(scope="module")
def right(program: Program, paths: list[str]) -> list[str]:
    """The numbers of all paths in a program without such libraries."""
    return program.run("none", paths)[0]


def test_numbers_are_those_of_python(program: Program, paths: list[str], right: list[str]) -> None:
    import torch

    space: dict = {}
    exec(SCRIPT, space)
    x = (torch.arange(1, 1601, dtype=torch.float64) % 7 - 3).view(40, 40) / 4
    bits = [f"{word & (2**64 - 1):016X}" for word in space["numbers"](x).view(torch.int64).tolist()]
    assert len(right) == len(paths) + 3, "tensors have a line for each type"
    assert all(line.split()[1:] == bits for line in right if not line.startswith("tensors"))


@pytest.mark.parametrize(("library", "first"), [("wrong", "script"), ("wide", "tensors"), ("dots", "script")])
def test_torch_takes_its_own(program, paths, right, library: str, first: str) -> None:
    """Each path has the numbers of a program without the library, whichever of them opens torch."""
    found, text = program.run(library, paths if first == "script" else reversed(paths))
    assert sorted(found) == sorted(right) and "warning" not in text


@pytest.mark.parametrize(
    ("library", "why"), [("wrong", ALLOCATOR), ("dots", ALLOCATOR), ("wide", ALLOCATOR), ("wide", SWITCHED_OFF)]
)
def test_refused_with_the_file(program, paths, right, library: str, why: dict) -> None:
    """Where torch cannot take its own: dots are wrong in torch alone, products of another type crash."""
    found, _ = program.run(library, paths, **why)
    assert len(found) == len(paths)
    reason = "malloc of this program is that of" if why is ALLOCATOR else "FTN_PYTORCH_DEEPBIND is 0"
    said = {"wrong": "sgemm_ of ", "wide": "takes integers of 8 bytes", "dots": "torch.dot gives wrong numbers"}
    for line in found:
        assert " 32 " in line and said[library] in line and reason in line, line
        assert f"liblibraries_lib_{library}.so" in line and 'per="node"' in line


def test_right_with_another_malloc(program, paths, right) -> None:
    assert program.run("none", paths, **ALLOCATOR)[0] == right


def test_right_but_not_its_own(program, paths, right) -> None:
    """One warning names the library, which may be slow."""
    found, text = program.run("right", paths, **ALLOCATOR)
    assert found == right
    assert text.count("liblibraries_lib_right.so") == 1, text


def test_another_openmp_stays_the_only_one(program, paths, right) -> None:
    """Unless the program says that two may be."""
    found, _ = program.run("wrong", ["script"], preload="openmp")
    assert " 32 " in found[0] and "liblibraries_openmp.so" in found[0] and "FTN_PYTORCH_DEEPBIND=1" in found[0]
    found, _ = program.run("wrong", ["tensors"], preload="openmp", FTN_PYTORCH_DEEPBIND="1")
    assert found == [line for line in right if line.startswith("tensors")]


def test_stream_in_the_memory_of_the_program(program) -> None:
    """What takes its own std::cout would use one that nobody has made."""
    found, _ = program.start("libraries_streams_fixed", "closure.py")
    assert found[0].startswith("caught 32 ") and "std::cout" in found[0] and "-fPIC" in found[0], found
    assert program.start("libraries_streams_free", "closure.py")[0] == ["caught 0 "]


def doctor(program: Program, library: str, build_dir: Path, **options) -> tuple[list[str], int]:
    """Lines about a program, which does not run meanwhile, with what is written of a failure, and the exit code."""
    package = Path(__file__).resolve().parents[2] / "python"
    variables = {**os.environ, "PYTHONPATH": str(package), "ftn_pytorch_ROOT": str(build_dir), **options}
    words = ["-m", "ftn_pytorch", "doctor", str(program.programs / f"libraries_{library}")]
    done = warm.run(words, env=variables)
    lines = [line for line in done.stdout.splitlines() if "program" in line or "own names" in line]
    return [*lines, *done.stderr.splitlines()], done.returncode


def test_doctor_looks_into_a_program(program, build_dir) -> None:
    lines, code = doctor(program, "wrong", build_dir)
    text = "\n".join(lines)
    assert "ok    own names first: torch" in text and "ok    program's malloc: " in text, text
    assert "ok    program's BLAS, LAPACK: sgemm_, dgemm_, cgemm_, zgemm_ of " in text, text
    lines, _ = doctor(program, "files", build_dir, LD_PRELOAD=str(program.programs / "liblibraries_allocator.so"))
    text = "\n".join(lines)
    assert "liblibraries_allocator.so" in text and "note  program's HDF5, NetCDF: H5open, nc_open of " in text, text
    lines, code = doctor(program, "wide", build_dir, FTN_PYTORCH_DEEPBIND="0")
    text = "\n".join(lines)
    assert code == 1 and "wrong program's BLAS, LAPACK: sgemm_, dgemm_" in text, text
    assert "takes integers of 8 bytes" in text and "note  own names first: no: FTN_PYTORCH_DEEPBIND is 0" in text, text


def test_doctor_starts_nothing_that_it_cannot_stop(program, build_dir, tmp_path) -> None:
    """Neither a script nor a program that is not there."""
    (tmp_path / "libraries_script").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "libraries_script").chmod(0o755)
    for library, said in (("script", "is no compiled program"), ("nothing", "cannot be read: No such file")):
        lines, code = doctor(Program(tmp_path, tmp_path), library, build_dir)
        assert code == 2 and said in lines[-1] and not (tmp_path / "ran").exists(), lines


def test_diagnosis_from_inside(program) -> None:
    found = program.start("../diagnosis/diagnosis_program", "diagnose", preload="lib_wrong")[0]
    assert any(line.startswith("ok    program's BLAS, LAPACK: sgemm_") for line in found), found


def test_torch_that_a_function_imports(program) -> None:
    found, _ = program.run("dots", ["late"], **ALLOCATOR)
    assert len(found) == 1 and " 32 " in found[0] and "torch.dot gives wrong numbers" in found[0]


def test_node_is_clean(program, right) -> None:
    """The process that loads for a node has not what the program is linked with."""
    found, _ = program.run("wrong", ["node"], **SWITCHED_OFF)
    assert found[0].split()[1:] == right[0].split()[1:]


def test_modules_take_their_own(program) -> None:
    found, _ = program.run("files", ["reader"])
    assert set(found[0].split()[1:]) == {"4000000000000000"}, "2.0, of the library that the module brings"


@pytest.mark.parametrize("why", [ALLOCATOR, SWITCHED_OFF], ids=["allocator", "switched_off"])
def test_modules_are_refused(program, why: dict) -> None:
    found, _ = program.run("files", ["reader"], **why)
    assert " 32 " in found[0] and "the module reader" in found[0] and "liblibraries_lib_files.so" in found[0], found
