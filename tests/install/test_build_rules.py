# SPDX-License-Identifier: MIT
"""The rules of the build: a checkout wherever users put it, generators with many configurations, absolute folders.

Compiling takes minutes and is left out where a case is not slow: each object file is the same empty one.
"""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pybind11
import pytest
from build_tree import cmake_cache
from projects import HERE, ROOT, SCRIPT, build, run

# In place of a compiler: an object with a main program and nothing else.
LAUNCHER = """#!/bin/sh
while [ $# -gt 1 ]; do
  case $1 in
    -o) cp "{empty}" "$2" ;;
    -MF) : >"$2" ;;
  esac
  shift
done
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What git knows, called like the package, in a folder with a space, a comma and a quote."""
    folder = tmp_path / "it's a, b" / "ftn_pytorch"
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard", "--deduplicate"], cwd=ROOT, check=True, capture_output=True
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def linked(tmp_path: Path):
    """linked(sources, *options): the build folder, with the library and all that it opens, linked by the commands of
    the build."""

    def linked(sources: Path, *options: str, generator: str = "Ninja") -> Path:
        launcher, empty = tmp_path / "launcher", tmp_path / "empty.o"
        folder = (tmp_path if sources == ROOT else sources) / "build"
        (tmp_path / "empty.c").write_text("__attribute__((weak)) int main(void) { return 0; }\n")
        run("cc", "-fPIC", "-c", "empty.c", "-o", empty, cwd=tmp_path)
        launcher.write_text(LAUNCHER.format(empty=empty))
        launcher.chmod(0o755)
        parts = [f"-DFTN_PYTORCH_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "BENCHMARKS")]
        known = [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                 f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"]  # fmt: skip
        run("cmake", "-S", sources, "-B", folder, "-G", generator, *parts, *known, *options, cwd=tmp_path)
        told = run("cmake", "--build", folder, "--target", "help", cwd=tmp_path)
        names = [f"ftn_pytorch_{part}" for part in ("core", "python", "node", "direct", "recording", "torchscript")]
        targets = [name for name in names if f"\n{name}: phony" in told]
        assert len(targets) in (3, 6)  # without torch, or with it
        run("cmake", "--build", folder, "--target", *targets, cwd=tmp_path)
        return folder

    return linked


def test_what_only_slow_tests_build_is_configured(cache: dict[str, str], tmp_path: Path) -> None:
    compiler = f"-DCMAKE_Fortran_COMPILER={cache['CMAKE_Fortran_COMPILER']}"
    options = (f"-DPython_EXECUTABLE={sys.executable}", compiler, "-DFTN_PYTORCH_SLOW_TESTS=ON")
    run("cmake", "--preset", "dev", "-B", tmp_path / "build", *options, cwd=ROOT)


def test_sanitizers_look_at_the_modules_that_programs_use(cache: dict[str, str], tmp_path: Path) -> None:
    """What the compiler can is tried by programs with the flags of the build, and a leak at their end is no answer."""
    compiler = f"-DCMAKE_Fortran_COMPILER={cache['CMAKE_Fortran_COMPILER']}"
    options = (f"-DPython_EXECUTABLE={sys.executable}", compiler, "-DFTN_PYTORCH_BUILD_TESTS=OFF")
    run("cmake", "--preset", "asan", "-B", tmp_path / "build", *options, cwd=ROOT)
    found = {name: value for name, value in cmake_cache(tmp_path / "build").items() if "FTN_PYTORCH_HAVE" in name}
    assert found == {name: cache[name] for name in found}


def test_the_environment_of_a_checkout_is_written_and_read(checkout: Path) -> None:
    python = checkout / ".venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", python.parents[1], cwd=checkout)
    (checkout / "cmake" / "requirements.txt").write_text("cmake\n")  # a program on the path will do
    run("cmake/setup.sh", "demo", cwd=checkout, FTN_PYTORCH_PYTHON=str(python))
    told = run("bash", "-c", '. build/environment; echo "$FTN_PYTORCH_PYTHON"; command -v python', cwd=checkout)
    assert told.splitlines() == [str(python)] * 2


def expect_complete(core: Path, build_dir: Path) -> None:
    """The library finds what it looks for beside itself, and by the paths that are compiled into it."""
    compiled = json.loads((build_dir / "compile_commands.json").read_text())
    places = {found for each in compiled for found in re.findall(r'_RELATIVE=\W*"([^"\\]+)', each["command"])}
    assert len(places) == 2
    for place in places:
        assert (core.parent / place).exists(), place
    assert list(core.parent.glob("libftn_pytorch_python3.*.so"))
    # the plug-in is opened only where it is said for which torch it was built
    assert {file.suffix for file in core.parent.glob("libftn_pytorch_direct.*")} in (set(), {".so", ".torch"})


def test_libraries_of_a_checkout_are_linked(checkout: Path, linked) -> None:
    """With the environment of make first, which lies in the checkout, and so does what the build asks it for."""
    environment = checkout / ".venv"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=checkout)
    packages = next(environment.glob("lib/python*/site-packages"))
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    shutil.copytree(pybind11.__path__[0], packages / "pybind11")
    folder = linked(checkout, f"-DPython_EXECUTABLE={environment / 'bin' / 'python'}")
    expect_complete(folder / "lib" / "libftn_pytorch.so", folder)


@pytest.mark.slow
def test_the_first_command_of_the_readme(checkout: Path) -> None:
    assert re.search(r"loss +\d", run("make", "first", cwd=checkout, FTN_PYTORCH_PYTHON=sys.executable))


def test_many_configurations_have_the_layout_of_one(linked) -> None:
    folder = linked(ROOT, generator="Ninja Multi-Config")
    expect_complete(folder / "lib" / "libftn_pytorch.so", folder)


def test_an_absolute_folder_of_libraries(linked, build_dir: Path, tmp_path: Path) -> None:
    """As some package managers pass it: it may lie outside the prefix."""
    libdir, prefix = tmp_path / "store" / "lib", tmp_path / "prefix"
    options = (f"-DCMAKE_INSTALL_LIBDIR={libdir}", f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DFTN_PYTORCH_FTORCH=ON")
    folder = linked(ROOT, *options)
    expect_complete(next(folder.rglob("libftn_pytorch.so")), folder)
    for part in ("fortran", "fortran/ftorch"):
        for file in (build_dir / part).glob("*.f90"):
            shutil.copy(file, folder / part)
    run("cmake", "--install", folder, cwd=tmp_path)
    expect_complete(libdir / "libftn_pytorch.so", folder)
    share = prefix / "share" / "ftn_pytorch"
    path = {"PKG_CONFIG_PATH": f"{libdir / 'pkgconfig'}:{share / 'ftorch' / 'lib' / 'pkgconfig'}"}
    for package, name, place in (
        ("ftn_pytorch", "libdir", libdir),
        ("ftn_pytorch", "includedir", prefix / "include"),
        ("ftn_pytorch", "fortran_dir", share / "fortran"),
        ("ftorch", "fortran_dir", share / "ftorch" / "fortran"),
    ):
        told = run("pkg-config", f"--variable={name}", package, cwd=tmp_path, **path)
        assert Path(told.strip()).resolve() == place and place.is_dir(), (package, name)
    assert run(prefix / "bin" / "ftn_pytorch", "--version", cwd=tmp_path)


def test_examples_that_are_not_built_are_not_installed(build_dir: Path, tmp_path: Path) -> None:
    rules = (build_dir / "examples" / "cmake_install.cmake").read_text()
    (tmp_path / "rules.cmake").write_text(rules.replace(f"{build_dir}/examples", f"{tmp_path}/no examples"))
    options = (f"-DCMAKE_INSTALL_PREFIX={tmp_path}", "-DCMAKE_INSTALL_LOCAL_ONLY=ON")
    run("cmake", *options, "-P", tmp_path / "rules.cmake", cwd=tmp_path)
    assert "assimilation" in rules and not (tmp_path / "bin" / "assimilation").exists()


def test_a_benchmark_of_ftorch_is_not_linked_with_modules_of_our_own(tmp_path: Path) -> None:
    """A package defines no target that is there already, as that of FTorch does."""
    real = "if(NOT TARGET FTorch::ftorch)\n  add_library(FTorch::ftorch INTERFACE IMPORTED)\nendif()\n"
    (tmp_path / "FTorchConfig.cmake").write_text(real)
    options = [f"-DFTorch_DIR={tmp_path}", "-DFPT_FTORCH_TRAINS=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    options += [f"-DFTN_PYTORCH_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES")]
    configure = ("cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", *options)
    for is_ours in ("OFF", "ON"):
        said = run(*configure, f"-DFTN_PYTORCH_FTORCH={is_ours}", cwd=tmp_path)
        targets = run("cmake", "--build", tmp_path / "build", "--target", "help", cwd=tmp_path)
        assert ("\nbench_driver_ftorch: " in targets) == (is_ours == "OFF")
        assert ("is not measured: FTorch::ftorch is this library's own" in said) == (is_ours == "ON")


@pytest.mark.slow
def test_a_program_of_many_configurations_and_absolute_folders(tmp_path: Path) -> None:
    """In the build of a user's project, then with what that has installed."""
    folder, libdir = tmp_path / "build", tmp_path / "store" / "lib"
    options = [f"-DCMAKE_INSTALL_LIBDIR={libdir}", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'prefix'}"]
    options += [f"-DPython_EXECUTABLE={sys.executable}", "-DFTN_PYTORCH_INSTALL=ON", "-DFTN_PYTORCH_DIRECT=OFF"]
    run("cmake", "-S", HERE / "add_subdirectory", "-B", folder, "-G", "Ninja Multi-Config", *options, cwd=tmp_path)
    run("cmake", "--build", folder, "--config", "Release", cwd=tmp_path)
    assert run(folder / "Release" / "program", SCRIPT, cwd=tmp_path) == "15\n"
    run("cmake", "--install", folder, "--config", "Release", cwd=tmp_path)
    shutil.rmtree(folder)
    user = tmp_path / "user"
    user.mkdir()
    program = build("find_package", user, f"-Dftn_pytorch_DIR={libdir / 'cmake' / 'ftn_pytorch'}")
    assert run(program, SCRIPT, cwd=user) == "15\n"
