# SPDX-License-Identifier: MIT
"""The wheel as users get it, in environments of their own. `make wheel` makes wheels and runs this."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from projects import HERE, ROOT, SCRIPT, attempt, build, run
from wheels import HERE_VERSION, WHEELS, Environment, make, wheel_of, with_torch_of_tests

pytestmark = pytest.mark.skipif(not WHEELS, reason="make wheel runs it")


def test_activated_environment(program: Path, environment: Environment, tmp_path: Path) -> None:
    assert run(program, SCRIPT, cwd=tmp_path, **environment.active) == "15\n"


def test_no_variable_is_needed_at_run_time(program: Path, environment: Environment, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run(program, SCRIPT, cwd=tmp_path, FTN_PYTORCH_LOG="info", FTN_PYTORCH_LOG_FILE=str(log)) == "15\n"
    assert f"{environment.folder}/bin/python" in log.read_text()
    assert "chosen by the Python of the environment in which this library lies" in log.read_text()


def test_prefix_and_cmakedir(environment: Environment, tmp_path: Path) -> None:
    command = environment.folder / "bin" / "ftn_pytorch"
    prefix = run(command, "--prefix", cwd=tmp_path).strip()
    assert run(command, "--cmakedir", cwd=tmp_path).strip() == f"{prefix}/lib/cmake/ftn_pytorch"
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


def test_pkg_config(environment: Environment, tmp_path: Path) -> None:
    for file in (HERE / "makefile" / "Makefile", HERE / "program.f90"):
        shutil.copy(file, tmp_path)
    folder = run(environment.folder / "bin" / "ftn_pytorch", "--pkgconfigdir", cwd=tmp_path).strip()
    run("make", "FC=gfortran", cwd=tmp_path, PKG_CONFIG_PATH=folder)
    assert run(tmp_path / "program", SCRIPT, cwd=tmp_path) == "15\n"


def test_an_environment_without_the_wheel_is_not_found(tmp_path: Path) -> None:
    bare = make(tmp_path / "bare", sys.executable)
    done = attempt("cmake", "-S", HERE / "find_package", "-B", tmp_path / "build", cwd=tmp_path, **bare.active)
    assert done.returncode != 0 and 'provided by "ftn_pytorch"' in done.stderr
    # what is left of one that was removed by hand
    stub = bare.folder / "lib" / "cmake" / "ftn_pytorch"
    shutil.copytree(ROOT / "cmake" / "wheel", stub)
    done = attempt("cmake", "-S", HERE / "find_package", "-B", tmp_path / "build", cwd=tmp_path, **bare.active)
    assert done.returncode != 0


def other_wheels() -> list[str]:
    found = (re.search(r"-cp3(\d+)-", wheel.name) for wheel in Path(WHEELS or "/none").glob("*.whl"))
    return sorted({f"3.{match[1]}" for match in found if match} - {HERE_VERSION})


def python_of(version: str) -> str:
    """The interpreter that `make wheel` has made a wheel with."""
    for line in (Path(WHEELS) / "pythons.txt").read_text().splitlines():
        if line.startswith(f"{version} "):
            return line.split(" ", 1)[1]
    raise AssertionError(f"pythons.txt has no Python {version}")


@pytest.mark.parametrize("version", other_wheels())
def test_one_program_runs_with_every_python(
    version: str, program: Path, environment: Environment, tmp_path: Path
) -> None:
    """Linked with the library of one environment, run by the Python of another one."""
    other = make(tmp_path / "other", python_of(version), wheel_of(version), "numpy")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\ndef ftn_pytorch_forward(x):\n    print(sys.version_info[:2], sys.prefix)\n    return 2*x + 1\n"
    )
    text = run(program, script, cwd=tmp_path, FTN_PYTORCH_PYTHON=str(other.python))
    minor = version.split(".")[1]
    assert text.count(f"(3, {minor}) {other.folder}") == 2 and text.endswith("15\n")
    active = run(program, script, cwd=tmp_path, **other.active)
    # as the page on Python says: an environment without the torch of the library's own is not taken
    assert f"(3, {HERE_VERSION.split('.')[1]}) {environment.folder}" in active


def test_another_python_of_the_same_version(program: Path, tmp_path: Path) -> None:
    """That of the system beside one of pyenv: it has a libpython of its own, which is taken."""
    system = "/usr/bin/python" + HERE_VERSION
    if not Path(system).exists() or Path(system).resolve() == Path(sys.base_prefix, "bin", Path(system).name).resolve():
        pytest.skip(f"there is no {system} beside that of the tests")
    if not list(Path("/usr/lib").glob(f"*-linux-gnu/libpython{HERE_VERSION}.so.1.0")):
        pytest.skip(f"{system} has no libpython")
    other = make(tmp_path / "other", system, wheel_of(HERE_VERSION), "numpy")
    text = run(program, SCRIPT, cwd=tmp_path, FTN_PYTORCH_PYTHON=str(other.python))
    assert text == "15\n"


def test_a_python_without_the_package(program: Path, tmp_path: Path) -> None:
    bare = make(tmp_path / "bare", sys.executable)
    done = attempt(program, SCRIPT, cwd=tmp_path, FTN_PYTORCH_PYTHON=str(bare.python))
    assert done.returncode != 0
    assert "which has no ftn_pytorch: install it there" in done.stderr and "pip install ftn-pytorch==" in done.stderr


def test_a_package_of_another_version(program: Path, environment: Environment, tmp_path: Path) -> None:
    other = with_torch_of_tests(make(tmp_path / "other", sys.executable, wheel_of(HERE_VERSION)))
    (other.packages / "ftn_pytorch" / "_version.py").write_text('__version__ = "0.0.1"\n')
    done = attempt(program, SCRIPT, cwd=tmp_path, FTN_PYTORCH_PYTHON=str(other.python))
    assert done.returncode != 0 and "which has ftn_pytorch 0.0.1 in " in done.stderr
    done = attempt(program, SCRIPT, cwd=tmp_path, **other.active)
    assert (done.returncode, done.stdout) == (0, "15\n"), done.stderr
    assert "The active environment is not used" in done.stderr and "ftn_pytorch 0.0.1" in done.stderr
    path = {"PYTHONPATH": str(other.packages)}
    done = attempt(program, SCRIPT, cwd=tmp_path, **path)
    assert done.returncode != 0 and "0.0.1 in " in done.stderr


def test_files_that_are_links_to_a_store(tmp_path: Path) -> None:
    """As package managers install: the environment is that of the links."""
    linked = with_torch_of_tests(make(tmp_path / "linked", sys.executable, wheel_of(HERE_VERSION)))
    package, store = linked.packages / "ftn_pytorch", tmp_path / "store"
    shutil.copytree(package, store)
    for file in [path for path in package.rglob("*") if path.is_file()]:
        file.unlink()
        file.symlink_to(store / file.relative_to(package))
    program = build("find_package", tmp_path, **linked.active)
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"
    assert run(linked.folder / "bin" / "ftn_pytorch", "--prefix", cwd=tmp_path) == f"{package}\n"


def test_a_python_that_is_gone_is_named(tmp_path: Path) -> None:
    """And no other one runs in its place."""
    own = make(tmp_path / "own", sys.executable, wheel_of(HERE_VERSION))
    program = build("find_package", tmp_path, **own.active)
    python = own.folder / "bin" / f"python{HERE_VERSION}"
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    done = attempt(program, SCRIPT, cwd=tmp_path)
    assert done.returncode != 0
    assert str(python) in done.stderr and "there is no Python that can be executed" in done.stderr


def test_a_library_in_no_environment(environment: Environment, tmp_path: Path) -> None:
    """Such as a folder that pip was given by --target: nothing is guessed."""
    folder = tmp_path / "target"
    shutil.copytree(environment.packages / "ftn_pytorch", folder / "ftn_pytorch")
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={folder / 'ftn_pytorch'}")
    done = attempt(program, SCRIPT, cwd=tmp_path)
    assert done.returncode != 0
    assert "no environment was found for the library in" in done.stderr and "FTN_PYTORCH_PYTHON" in done.stderr
    named = {"FTN_PYTORCH_PYTHON": str(environment.python)}
    assert run(program, SCRIPT, cwd=tmp_path, **named) == "15\n"


def test_a_python_without_libpython(program: Path, environment: Environment, tmp_path: Path) -> None:
    base, version = tmp_path / "static", HERE_VERSION
    (base / "bin").mkdir(parents=True)
    (base / "lib").mkdir()
    shutil.copy(os.path.realpath(sys.executable), base / "bin" / f"python{version}")
    (base / "lib" / f"python{version}").symlink_to(Path(sys.base_prefix) / "lib" / f"python{version}")
    named = {"FTN_PYTORCH_PYTHON": str(base / "bin" / f"python{version}"), "PYTHONPATH": str(environment.packages)}
    done = attempt(program, SCRIPT, cwd=tmp_path, **named)
    assert done.returncode != 0
    assert "is a Python without a shared libpython" in done.stderr and "--enable-shared" in done.stderr


def test_without_a_compiler_scripts_work(program: Path, environment: Environment, tmp_path: Path) -> None:
    assert run(program, SCRIPT, cwd=tmp_path, PATH="/there/is/none") == "15\n"
    command = environment.folder / "bin" / "ftn_pytorch"
    done = attempt(
        command, "build-direct", "--into", tmp_path, cwd=tmp_path, PATH=str(only(tmp_path, "cmake", "ninja"))
    )
    assert done.returncode == 2 and "there is no C++ compiler: install g++ 10 or newer" in done.stderr
    done = attempt(command, "build-direct", "--into", tmp_path, cwd=tmp_path, PATH="/there/is/none")
    assert done.returncode == 2 and f"there is no cmake: {environment.python} -m pip install cmake" in done.stderr


def only(folder: Path, *programs: str) -> Path:
    """A folder for PATH with some programs."""
    place = folder / "programs"
    place.mkdir(exist_ok=True)
    for name in programs:
        found = shutil.which(name)
        assert found
        (place / name).symlink_to(found)
    return place


@pytest.fixture
def protected(environment: Environment) -> Iterator[Environment]:
    run("chmod", "-R", "a-w", environment.folder, cwd=environment.folder.parent)
    yield environment
    run("chmod", "-R", "u+w", environment.folder, cwd=environment.folder.parent)


def test_an_environment_that_cannot_be_written(program: Path, protected: Environment, tmp_path: Path) -> None:
    # root may write everywhere, unless it lays that down
    as_user = ("setpriv", "--bounding-set=-all") if os.getuid() == 0 else ()
    assert run(*as_user, program, SCRIPT, cwd=tmp_path) == "15\n"
    done = attempt(*as_user, protected.folder / "bin" / "ftn_pytorch", "build-direct", cwd=tmp_path)
    assert done.returncode == 2 and "nothing can be written to" in done.stderr and "--into" in done.stderr
