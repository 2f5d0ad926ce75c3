# SPDX-License-Identifier: MIT
"""Fortran modules are compiled once: a build keeps them for projects with the same compiler and flags."""

import shutil
import subprocess
from pathlib import Path

import pytest
from projects import HERE, ROOT, SCRIPT, build, configure, run

TAKEN = "Modules of ftn_pytorch_fortran: compiled before"


def entries(cache: Path) -> list[Path]:
    return list((cache / "ftn_pytorch" / "modules").glob("*"))


@pytest.fixture(scope="module")
def first(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project that was built, and "cache" beside it, where it has kept its modules."""
    folder = tmp_path_factory.mktemp("first")
    build("find_package", folder, f"-DCMAKE_PREFIX_PATH={prefix}", XDG_CACHE_HOME=str(folder / "cache"))
    return folder


def told_by(project: Path | str, folder: Path, prefix: Path, cache: Path, *options: str) -> str:
    """What CMake says of another project."""
    folder.mkdir(exist_ok=True)
    return configure(str(project), folder, f"-DCMAKE_PREFIX_PATH={prefix}", *options, XDG_CACHE_HOME=str(cache))


def test_the_next_project_compiles_no_module(first: Path, prefix: Path, tmp_path: Path) -> None:
    cache = shutil.copytree(first / "cache", tmp_path / "cache")
    assert TAKEN in told_by("find_package", tmp_path, prefix, cache)
    shutil.rmtree(cache)  # it has a copy
    told = run("cmake", "--build", tmp_path / "build", cwd=tmp_path)
    assert "fpt_" not in told and "kept.f90" in told
    assert run(tmp_path / "build" / "program", SCRIPT, cwd=tmp_path) == "15\n"
    assert TAKEN in told_by("find_package", tmp_path, prefix, cache), "the copy serves another configuration"


def test_a_project_goes_on_with_what_it_has_compiled(first: Path, prefix: Path) -> None:
    assert TAKEN not in told_by("find_package", first, prefix, first / "cache")
    assert "Building" not in run("cmake", "--build", first / "build", cwd=first)


@pytest.mark.parametrize(
    "options",
    [
        ("-DCMAKE_Fortran_FLAGS=-fdefault-real-8",),
        ("-DCMAKE_C_FLAGS=-O1",),
        ("-DCMAKE_BUILD_TYPE=Release",),
        ("-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON",),
        ("-DFTN_PYTORCH_ARG_RANKS=ON",),
    ],
)
def test_what_was_compiled_otherwise_is_not_taken(options: tuple, first: Path, prefix: Path, tmp_path: Path) -> None:
    assert TAKEN not in told_by("find_package", tmp_path, prefix, first / "cache", *options)
    assert "keep.cmake" in (tmp_path / "build" / "build.ninja").read_text(), "it is kept, too"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project, to be changed."""
    shutil.copytree(HERE / "find_package", tmp_path / "find_package")
    shutil.copy(HERE / "program.f90", tmp_path)
    return tmp_path / "find_package"


@pytest.mark.parametrize("place", ["before", "after"])
def test_flags_count_wherever_the_project_sets_them(
    place: str, project: Path, first: Path, prefix: Path, tmp_path: Path
) -> None:
    file = project / "CMakeLists.txt"
    lines = file.read_text()
    if place == "before":
        lines = lines.replace("find_package", "add_compile_options(-O1)\nfind_package")
    else:
        lines += 'set(CMAKE_Fortran_FLAGS "-O1")\n'
    assert TAKEN in told_by(project, tmp_path / "plain", prefix, first / "cache")
    file.write_text(lines)
    assert TAKEN not in told_by(project, tmp_path / "changed", prefix, first / "cache")


@pytest.mark.parametrize("flags", ["--coverage", "-fdebug-prefix-map={folder}=."])
def test_what_belongs_to_one_project_is_not_kept(flags: str, first: Path, prefix: Path, tmp_path: Path) -> None:
    option = f"-DCMAKE_Fortran_FLAGS={flags.format(folder=tmp_path / 'build')}"
    assert TAKEN not in told_by("find_package", tmp_path, prefix, first / "cache", option)
    assert "keep.cmake" not in (tmp_path / "build" / "build.ninja").read_text()


def test_it_can_be_switched_off(first: Path, prefix: Path, tmp_path: Path) -> None:
    off = "-DFTN_PYTORCH_MODULES_CACHE=OFF"
    assert TAKEN not in told_by("find_package", tmp_path, prefix, first / "cache", off)
    assert "keep.cmake" not in (tmp_path / "build" / "build.ninja").read_text()


def test_a_folder_can_be_named(first: Path, prefix: Path, tmp_path: Path) -> None:
    named = f"-DFTN_PYTORCH_MODULES_CACHE={first / 'cache' / 'ftn_pytorch' / 'modules'}"
    assert TAKEN in told_by("find_package", tmp_path, prefix, tmp_path / "nothing", named)


def test_an_entry_for_something_else_is_not_taken(first: Path, prefix: Path, tmp_path: Path) -> None:
    cache = shutil.copytree(first / "cache", tmp_path / "cache")
    (entry,) = entries(cache)
    with open(entry / "key.txt", "a") as key:
        key.write("and more\n")
    assert TAKEN not in told_by("find_package", tmp_path, prefix, cache)


def keep(entry: Path, folder: Path) -> subprocess.Popen:
    """What a build does in its end, with files that stand for those of a compiler."""
    values = {"ENTRY": entry, "KEY": folder / "key.txt", "MODULES": folder, "OBJECTS": folder / "a.o"}
    options = [f"-D{name}={value}" for name, value in values.items()]
    return subprocess.Popen(["cmake", *options, "-P", ROOT / "cmake" / "modules" / "keep.cmake"])


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    folder = tmp_path / "compiled"
    folder.mkdir()
    for name in ("key.txt", "a.o", "a.mod", "a.smod"):
        (folder / name).write_text(name * 1000)
    return folder


def test_builds_at_once_keep_one_whole_entry(compiled: Path, tmp_path: Path) -> None:
    entry = tmp_path / "cache" / "entry"
    assert [each.wait() for each in [keep(entry, compiled) for _ in range(8)]] == [0] * 8
    assert list(entry.parent.iterdir()) == [entry]
    files = {str(file.relative_to(entry)): file.read_text() for file in entry.rglob("*") if file.is_file()}
    names = {"key.txt": "key.txt", "objects/a.o": "a.o", "modules/a.mod": "a.mod", "modules/a.smod": "a.smod"}
    assert files == {name: source * 1000 for name, source in names.items()}


@pytest.mark.parametrize("missing", ["key.txt", "a.o"])
def test_what_cannot_be_copied_leaves_no_entry_and_is_no_failure(missing: str, compiled: Path, tmp_path: Path) -> None:
    (compiled / missing).unlink()
    assert keep(tmp_path / "cache" / "entry", compiled).wait() == 0
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_no_failure(compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert keep(tmp_path / "file" / "entry", compiled).wait() == 0
    assert (tmp_path / "file").read_text() == "no folder"


def test_ftorch_takes_its_modules_from_there_too(prefix: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        options = (f"-DCMAKE_PREFIX_PATH={prefix / 'share' / 'ftn_pytorch' / 'ftorch'}",)
        told = configure("ftorch", tmp_path / name, *options, XDG_CACHE_HOME=str(tmp_path / "cache"))
        run("cmake", "--build", tmp_path / name / "build", cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert TAKEN in told and "Modules of ftn_pytorch_ftorch: compiled before" in told
    assert run(tmp_path / "other" / "build" / "program", SCRIPT, cwd=tmp_path) == "15\n"


def test_two_folders_of_a_project_find_a_package_each(first: Path, prefix: Path, tmp_path: Path) -> None:
    """Variables of the first folder are unknown in the second one."""
    ftorch = prefix / "share" / "ftn_pytorch" / "ftorch"
    lines = {
        ".": f"project(two LANGUAGES C Fortran)\nset(CMAKE_PREFIX_PATH {prefix} {ftorch})\n"
        "add_subdirectory(one)\nadd_subdirectory(other)\n",
        "one": "find_package(ftn_pytorch REQUIRED)\n",
        "other": "find_package(FTorch REQUIRED)\n",
    }
    project = tmp_path / "project"
    for folder, text in lines.items():
        (project / folder).mkdir(exist_ok=True, parents=True)
        (project / folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.20)\n{text}")
    assert TAKEN in told_by(project, tmp_path, prefix, first / "cache")
    rules = (tmp_path / "build" / "build.ninja").read_text()
    assert f"{prefix}/lib/cmake/ftn_pytorch/modules/keep.cmake" in rules, "the modules of FTorch are kept"
