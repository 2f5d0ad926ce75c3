# SPDX-License-Identifier: MIT
"""Every code block of the documentation is compiled and linked, called, configured or looked up.

Complete Fortran programs and modules are compiled as they are. Fragments become procedures with the declarations that
docs/fortran-api.md gives, and those of comments above the block: ``<!-- test: use <modules> -->`` and
``<!-- test: declare <declarations> -->``. Each row of a table below such a comment is a fragment, too.
``<!-- test: external <names> -->`` names procedures that the reader's program has, and
``<!-- test: call <expression> -->`` calls a function of a Python block. A block with
``<!-- test: no, because <reason> -->`` is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pages import BLOCKS, ROOT, Block, blocks

import ftn_pytorch
from ftn_pytorch.opening import open_runner
from ftn_pytorch.system import host_values
from ftn_pytorch.system.process import FtnPytorchWarning

DECLARATIONS = next(block for block in blocks("fortran") if block.page.name == "fortran-api.md")


def run(command: Sequence[object], cwd: Path, **environment: str) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command[0]} failed in {cwd}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_blocks_are_tested(capsys: pytest.CaptureFixture[str]) -> None:
    """Languages that this file knows, and few blocks that are left out. Blocks without a language show output."""
    counts = Counter(block.language for block in BLOCKS if block.is_tested)
    left_out = [block for block in BLOCKS if block.language and not block.is_tested]
    with capsys.disabled():
        tested = ", ".join(f"{count} {language}" for language, count in sorted(counts.items()) if language)
        print(f"\ncode blocks that are tested: {tested}; left out: {len(left_out)}")
    assert set(counts) <= {"", "c", "cmake", "cpp", "fortran", "make", "python", "sh"}
    assert len(left_out) <= 10


# ---- Fortran -----------------------------------------------------------------------------------------------------


def _first_word(block: Block) -> str:
    return block.text.split(maxsplit=1)[0]


def _as_procedure(block: Block) -> str:
    """A fragment as a procedure. Declarations of the page are split after the last `use`."""
    lines = [] if block is DECLARATIONS else block.text.splitlines()
    common = DECLARATIONS.text.splitlines()
    used = [line for line in common if line.startswith("use")]
    used += [f"use {module}" for text in block.comment("use") for module in text.split(", ")]
    declared = [line for line in common if not line.startswith("use")] + block.comment("declare")
    return "\n".join(
        [f"subroutine {block.name}()", *used, "implicit none", *declared, *lines, f"end subroutine {block.name}", ""]
    )


def _needs_mpi(block: Block) -> bool:
    return "mpi_f08" in block.text or any("mpi_f08" in modules for modules in block.comment("use"))


@pytest.mark.parametrize("mpi", [False, True], ids=["plain", "mpi"])
def test_fortran(mpi: bool, build_dir: Path, cache: dict[str, str], tmp_path: Path) -> None:
    """One call of the compiler: modules first, then all fragments in one file, then programs. One link of them all."""
    fortran = build_dir / "fortran"
    folders = [fortran / "ftn_pytorch_fortran_modules", fortran / "ftorch" / "ftn_pytorch_ftorch_modules"]
    archives = [fortran / "ftorch" / "libftn_pytorch_ftorch.a", fortran / "libftn_pytorch_fortran.a"]
    mpi_libraries: list[str] = []
    if mpi:
        if cache.get("MPI_RESULT_Fortran_test_mpi_F08_MODULE") != "TRUE":
            pytest.skip("there is no MPI with module mpi_f08 for this compiler")
        folders.append(Path(cache["MPI_Fortran_MODULE_DIR"]))
        mpi_libraries = [cache[f"MPI_{name}_LIBRARY"] for name in cache["MPI_Fortran_LIB_NAMES"].split(";")]
    chosen = [block for block in blocks("fortran") if _needs_mpi(block) is mpi]
    whole = {kind: [block for block in chosen if _first_word(block) == kind] for kind in ("module", "program")}
    fragments = [block for block in chosen if _first_word(block) not in whole]
    assert fragments
    for block in whole["module"] + whole["program"]:
        (tmp_path / f"{block.name}.f90").write_text(block.text)
    (tmp_path / "fragments.f90").write_text("\n".join(map(_as_procedure, fragments)))
    files = [*(block.name for block in whole["module"]), "fragments", *(block.name for block in whole["program"])]
    externals = [name for block in chosen for names in block.comment("external") for name in names.split(", ")]
    (tmp_path / "externals.f90").write_text("".join(f"subroutine {name}()\nend subroutine\n" for name in externals))
    files.append("externals")
    include = [f"-I{folder}" for folder in folders]
    compiler = cache["CMAKE_Fortran_COMPILER"]
    run([compiler, "-c", "-O0", "-fPIC", *include, *(f"{file}.f90" for file in files)], tmp_path)
    # One link for all: a library, in which each program may have its main
    options = ["-shared", "-Wl,--no-undefined", "-Wl,--allow-multiple-definition", f"-L{build_dir / 'lib'}"]
    run([compiler, *options, *(f"{file}.o" for file in files), *archives, "-lftn_pytorch", *mpi_libraries], tmp_path)


# ---- C and C++ ---------------------------------------------------------------------------------------------------

C_FLAGS = ("-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'src'}")


@pytest.mark.parametrize("block", blocks("c"), ids=lambda block: block.name)
def test_c(block: Block, cache: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(block.text)
    run([cache["CMAKE_C_COMPILER"], "-std=c11", *C_FLAGS, "-fsyntax-only", "program.c"], tmp_path)


@pytest.mark.parametrize("by", ["fortran", "header"])
def test_mains_of_other_languages(by: str, build_dir: Path, cache: dict[str, str], tmp_path: Path) -> None:
    """The programs of docs/c-api.md train the script of the README."""
    (script,) = (block for block in blocks("python") if block.page == ROOT / "README.md")
    (tmp_path / "first.py").write_text(script.text)
    page = {block.language: block.text for block in BLOCKS if block.page.name == "c-api.md"}
    options = [f"-L{build_dir / 'lib'}", f"-Wl,-rpath,{build_dir / 'lib'}", "-lftn_pytorch"]
    fortran, c, cpp = (cache[f"CMAKE_{language}_COMPILER"] for language in ("Fortran", "C", "CXX"))
    if by == "fortran":
        (tmp_path / "closure.f90").write_text(page["fortran"])
        (tmp_path / "main.c").write_text(page["c"])
        modules = build_dir / "fortran" / "ftn_pytorch_fortran_modules"
        run([fortran, "-c", f"-I{modules}", "closure.f90"], tmp_path)
        run([c, "-std=c11", *C_FLAGS, "-c", "main.c"], tmp_path)
        main = ["-fno-fortran-main"] if "flang" in fortran else []
        archive = build_dir / "fortran" / "libftn_pytorch_fortran.a"
        run([fortran, *main, "-o", "program", "main.o", "closure.o", archive, *options], tmp_path)
    else:
        (tmp_path / "main.cpp").write_text(page["cpp"])
        run([cpp, "-std=c++17", *C_FLAGS, "-o", "program", "main.cpp", *options], tmp_path)
    said = run(["./program"], tmp_path, FTN_PYTORCH_PYTHON=sys.executable)
    assert float(said.removeprefix("loss ")) < 1e-4


# ---- Python ------------------------------------------------------------------------------------------------------


@pytest.fixture
def isolated(monkeypatch: pytest.MonkeyPatch, build_dir: Path, tmp_path: Path) -> Iterator[None]:
    """Loading a script changes sys.path; blocks read and write files of the working directory.

    They have what a program gives: the array "owned", the procedure "solver", one rank, and a library that records.
    """
    import torch

    from ftn_pytorch.system import extension

    monkeypatch.setattr(sys, "path", [str(ROOT / "python"), *sys.path])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ftn_pytorch_ROOT", str(build_dir))
    if extension.module() is None:
        monkeypatch.setattr(extension._Found, "obstacle", None)  # of an earlier test, which did not name the build
    monkeypatch.setitem(host_values._values, "owned", torch.ones(2, 4, dtype=torch.bool).numpy())
    monkeypatch.setattr(ftn_pytorch, "procedure", {"solver": torch.sin}.get)
    torch.save(torch.nn.Linear(3, 1).state_dict(), "weights.pt")
    saved = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls TorchScript deprecated
        torch.jit.script(saved).save("net.pt")
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.name)
@pytest.mark.usefixtures("isolated")
def test_python(block: Block, tmp_path: Path) -> None:
    """Each block is loaded as a script, as Fortran does it, and each function that the program could call is called."""
    import torch

    from ftn_pytorch.system import extension

    if not extension.obstacle():
        warnings.simplefilter("error", FtnPytorchWarning)  # such as that something is not recorded
    script = tmp_path / f"{block.name}.py"
    script.write_text(block.text)
    runner = open_runner(str(script), {}, {})
    assert runner.backend == "script"
    called = {"ftn_pytorch_setup"}  # by loading

    def caller(name: str) -> Callable:
        def call(*args: Any, **kwargs: Any) -> None:
            runner.first_call(name, args, kwargs)
            runner.bind(name, 0)[0](*args, **kwargs)
            called.add(name)

        return call

    names = {name: getattr(torch, name) for name in ("rand", "randint", "sin", "zeros")}
    names |= {name: caller(name) for name in runner.functions()}
    for call in block.comment("call"):
        eval(call, names)
    assert called >= set(runner.functions())


# ---- CMake and make ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", blocks("cmake"), ids=lambda block: block.name)
def test_cmake(block: Block, cache: dict[str, str], tmp_path: Path) -> None:
    """A project configures, with this repository in place of an installed package."""
    packages = tmp_path / "prefix" / "lib" / "cmake"
    for name, config in (("ftn_pytorch", "ftn_pytorch-config.cmake"), ("FTorch", "FTorchConfig.cmake")):
        (packages / name).mkdir(parents=True)
        lines = (
            f'set(FTN_PYTORCH_FTORCH {name == "FTorch"})\nenable_language(C)\nadd_subdirectory("{ROOT}" ftn_pytorch)\n'
        )
        (packages / name / config).write_text(lines)
    (tmp_path / "CMakeLists.txt").write_text(block.text)
    for name in ("model.f90", "first.f90", "closure.f90", "main.c", "main.cpp"):
        (tmp_path / name).touch()
    compiler = f"-DCMAKE_Fortran_COMPILER={cache['CMAKE_Fortran_COMPILER']}"
    options = [compiler, f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}"]
    run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", *options], tmp_path)


@pytest.mark.parametrize("block", blocks("make"), ids=lambda block: block.name)
def test_make(block: Block, build_dir: Path, tmp_path: Path) -> None:
    """The Makefiles find all sources of an installed package and say how to build a program, or the modules."""
    (tmp_path / "Makefile").write_text(block.text)
    (tmp_path / "model.f90").write_text("end\n")
    pkgconfig, fortran = tmp_path / "lib" / "pkgconfig", tmp_path / "share" / "ftn_pytorch" / "fortran"
    for folder in (pkgconfig, fortran):
        folder.mkdir(parents=True)
    shutil.copy(build_dir / "cmake" / "ftn_pytorch.pc", pkgconfig)
    for source in [*(ROOT / "fortran").glob("*.[cf]*"), *(build_dir / "fortran").glob("*.f90")]:
        (fortran / source.name).symlink_to(source)
    goal = "model" if "model:" in block.text else "libmodules.a"
    steps = run(["make", "--dry-run", goal], tmp_path, PKG_CONFIG_PATH=str(pkgconfig))
    parts = (
        "fpt_descriptor.c",
        " fpt_single.o",
        " -std=gnu",
        "fortran/ftn_pytorch.f90",
        " torch_ftn.o ",
        "-lftn_pytorch",
    )
    assert [part for part in parts if part not in steps] == []
