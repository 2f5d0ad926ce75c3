# SPDX-License-Identifier: MIT
"""An installation as users get it: each test builds a program of theirs, runs it and checks the number it prints."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pybind11
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPT = HERE / "script.py"


def attempt(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run a command with no variable set that could help it."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "FC", "LANG") if name in os.environ}
    return subprocess.run(list(map(str, command)), cwd=cwd, env=kept | environment, capture_output=True, text=True)


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Standard output of a command that must succeed."""
    done = attempt(*command, cwd=cwd, **environment)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(project: str, folder: Path, *options: str) -> Path:
    """Configure and build a project of this folder; the program."""
    run("cmake", "-S", HERE / project, "-B", folder / "build", "-G", "Ninja", *options, cwd=folder)
    run("cmake", "--build", folder / "build", "--target", "program", cwd=folder)
    return folder / "build" / "program"


def install(build_dir: Path, prefix: Path) -> Path:
    run("cmake", "--install", build_dir, "--prefix", prefix, cwd=prefix.parent)
    return prefix


@pytest.fixture(scope="module")
def prefix(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(build_dir, tmp_path_factory.mktemp("installed") / "prefix")


def test_find_package(prefix: Path, tmp_path: Path) -> None:
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


def test_first_program_of_the_readme(prefix: Path, tmp_path: Path) -> None:
    """The first blocks of README.md, word for word."""
    readme = (ROOT / "README.md").read_text()
    blocks = {
        language: readme.split(f"```{language}\n", 1)[1].split("```", 1)[0]
        for language in ("python", "fortran", "cmake")
    }
    (tmp_path / "first.py").write_text(blocks["python"])
    (tmp_path / "model.f90").write_text(blocks["fortran"])
    (tmp_path / "CMakeLists.txt").write_text(blocks["cmake"])
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    run("cmake", "--build", tmp_path / "build", cwd=tmp_path)
    word, loss = run(tmp_path / "build" / "model", cwd=tmp_path).split()
    assert word == "loss" and 0 <= float(loss) < 1e-6


def test_find_package_with_wider_default_kinds(prefix: Path, tmp_path: Path) -> None:
    flags = "-DCMAKE_Fortran_FLAGS=-fdefault-real-8 -fdefault-integer-8"
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", flags)
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


def test_add_subdirectory(tmp_path: Path) -> None:
    program = build("add_subdirectory", tmp_path, f"-DPython_EXECUTABLE={sys.executable}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"
    built = tmp_path / "build" / "ftn_pytorch"
    assert not any((built / part).exists() for part in ("tests", "examples", "benchmarks")), "more than is needed"


@pytest.mark.parametrize("missing", ["pybind11", "fypp"])
def test_a_package_that_cmake_misses_is_named(missing: str, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare", cwd=tmp_path)
    python = tmp_path / "bare" / "bin" / "python"
    if missing == "fypp":
        packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
        (Path(packages) / "pybind11").symlink_to(Path(pybind11.__file__).parent)
    folder = tmp_path / "build"
    done = attempt(
        "cmake",
        "-S",
        HERE / "add_subdirectory",
        "-B",
        folder,
        "-G",
        "Ninja",
        f"-DPython_EXECUTABLE={python}",
        cwd=tmp_path,
    )
    assert done.returncode != 0
    text = " ".join(done.stderr.split())  # CMake breaks lines where it likes
    assert f"{missing} is missing. Install it with: {python} -m pip install {missing}" in text


def test_makefile(prefix: Path, cache: dict[str, str], tmp_path: Path) -> None:
    for file in (HERE / "makefile" / "Makefile", HERE / "program.f90"):
        shutil.copy(file, tmp_path)
    header = Path(cache["FTN_PYTORCH_ISO_FORTRAN_BINDING"])
    flags = [] if cache["CMAKE_Fortran_COMPILER"].endswith("gfortran") else [f"CFLAGS=-I{header.parent}"]
    compiler = f"FC={cache['CMAKE_Fortran_COMPILER']}"
    run("make", compiler, *flags, cwd=tmp_path, PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    assert run(tmp_path / "program", SCRIPT, cwd=tmp_path) == "15\n"


def test_c(prefix: Path, tmp_path: Path) -> None:
    program = build("c", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


def test_moved_to_a_path_with_a_space(build_dir: Path, tmp_path: Path) -> None:
    moved = install(build_dir, tmp_path / "prefix").rename(tmp_path / "moved prefix")
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={moved}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"
    example = moved / "share" / "ftn_pytorch" / "examples" / "python_training" / "oscillator.py"
    run(moved / "bin" / "python_training", example, cwd=tmp_path)


def test_pip_install(tmp_path: Path) -> None:
    sources = tmp_path / "sources"  # building leaves files behind
    sources.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    shutil.copytree(ROOT / "python", sources / "python", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    run(sys.executable, "-m", "venv", tmp_path / "fresh", cwd=tmp_path)
    offline = ("--no-deps", "--no-build-isolation", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", *offline, "-w", tmp_path, sources, cwd=tmp_path)
    fresh = tmp_path / "fresh" / "bin" / "python"
    run(fresh, "-m", "pip", "install", *offline, *tmp_path.glob("*.whl"), cwd=tmp_path)
    assert run(fresh, "-m", "ftn_pytorch", "--version", cwd=tmp_path).strip().split()[-1] in (
        ROOT / "src" / "ftn_pytorch.h"
    ).read_text()


def test_profile_build_writes_gmon_out(cache: dict[str, str], tmp_path: Path) -> None:
    folder, quick = tmp_path / "build", tmp_path / "quick.cmake"
    # Whether the core is optimised makes no difference here, but for the time that it takes.
    quick.write_text("add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-O0>)\n")
    configure = ("cmake", "--preset", "profile", "-B", folder, f"-DPython_EXECUTABLE={sys.executable}",
                 f"-DCMAKE_PROJECT_INCLUDE={quick}")  # fmt: skip
    if not cache["CMAKE_Fortran_COMPILER"].endswith("gfortran"):
        refused = attempt(*configure, cwd=ROOT)
        assert refused.returncode != 0
        assert "The build type Profile is for gprof" in " ".join(refused.stderr.split())
        return
    run(*configure, cwd=ROOT)
    run("cmake", "--build", folder, "--target", "python_training", cwd=ROOT)
    example = ROOT / "examples" / "python_training" / "oscillator.py"
    run(folder / "examples" / "python_training" / "python_training", example, cwd=tmp_path)
    assert (tmp_path / "gmon.out").stat().st_size > 0
