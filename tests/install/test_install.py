# SPDX-License-Identifier: MIT
"""An installation as users get it: each test builds a program of theirs, runs it and checks the number it prints."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pybind11
import pytest
import torch
from projects import HERE, ROOT, SCRIPT, attempt, build, configure, install, run


def test_find_package(prefix: Path, tmp_path: Path) -> None:
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


def test_bytecode_is_installed_and_survives_a_copy(prefix: Path, tmp_path: Path) -> None:
    """With other times of files, and where nothing can be written; a name of a source that is changed is not read."""
    package = prefix / "share" / "ftn_pytorch" / "python" / "ftn_pytorch"
    sources = {path for path in package.rglob("*.py") if "project" not in path.parts}
    tag = sys.implementation.cache_tag
    assert all((path.parent / "__pycache__" / f"{path.stem}.{tag}.pyc").is_file() for path in sources)
    copy = shutil.copytree(package.parent, tmp_path / "copy", copy_function=shutil.copyfile)
    errors = copy / "ftn_pytorch" / "errors.py"
    errors.write_text("raise SystemExit('the source was compiled')")
    code = "import ftn_pytorch.errors as found; print(found.FtnPytorchError.__name__, found.__cached__)"
    name, cached = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(copy)).split()
    assert name == "FtnPytorchError" and Path(cached).is_relative_to(copy)


@pytest.mark.slow
def test_ftorch(prefix: Path, tmp_path: Path) -> None:
    """A project of FTorch, with the package FTorch of this library in place of FTorch's; a script is a model, too."""
    program = build("ftorch", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix / 'share' / 'ftn_pytorch' / 'ftorch'}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


def test_a_real_ftorch_is_never_hidden(prefix: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "lib" / "cmake" / "FTorch").mkdir(parents=True)
    (real / "lib" / "cmake" / "FTorch" / "FTorchConfig.cmake").write_text('message(FATAL_ERROR "the real one")\n')
    command = ("cmake", "-S", HERE / "ftorch", "-B", tmp_path / "build", "-G", "Ninja")
    both = attempt(*command, f"-DCMAKE_PREFIX_PATH={prefix};{real}", cwd=tmp_path)
    assert both.returncode != 0 and "the real one" in both.stderr
    shutil.rmtree(tmp_path / "build")
    alone = attempt(*command, f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    assert alone.returncode != 0 and 'provided by "FTorch"' in alone.stderr


@pytest.mark.slow
@pytest.mark.parametrize("sources", ["gfortran_sources", "fortran_sources"])
def test_ftorch_with_make(sources: str, prefix: Path, is_gnu_fortran: bool, tmp_path: Path) -> None:
    """The sources that both files of pkg-config list, in their order."""
    if not is_gnu_fortran:
        pytest.skip("the flags are those of gfortran")
    folders = (prefix / "lib" / "pkgconfig", prefix / "share" / "ftn_pytorch" / "ftorch" / "lib" / "pkgconfig")
    path = {"PKG_CONFIG_PATH": os.pathsep.join(map(str, folders))}

    def ask(package: str, *options: str) -> list[str]:
        return run("pkg-config", *options, package, cwd=tmp_path, **path).split()

    assert ask("ftorch", "--modversion") == ["1.1.0"]
    for package in ("ftn_pytorch", "ftorch"):
        run("cc", *ask(package, "--cflags"), "-c", *ask(package, "--variable=c_sources"), cwd=tmp_path)
        flags = ask("ftn_pytorch", "--variable=gfortran_flags")
        run("gfortran", *flags, "-c", *ask(package, f"--variable={sources}"), cwd=tmp_path)
    libraries = ask("ftorch", "--libs")
    run("gfortran", HERE / "ftorch.f90", *tmp_path.glob("*.o"), *libraries, "-o", "program", cwd=tmp_path)
    assert run(tmp_path / "program", SCRIPT, cwd=tmp_path) == "15\n"


@pytest.mark.slow
def test_first_program_of_the_readme(prefix: Path, tmp_path: Path) -> None:
    """The first blocks of README.md, word for word."""
    readme = (ROOT / "README.md").read_text()
    blocks = {
        language: readme.split(f"```{language}\n", 1)[1].split("```", 1)[0]
        for language in ("python", "fortran", "cmake")
    }
    (tmp_path / "first.py").write_text(blocks["python"])
    (tmp_path / "first.f90").write_text(blocks["fortran"])
    (tmp_path / "CMakeLists.txt").write_text(blocks["cmake"])
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    run("cmake", "--build", tmp_path / "build", cwd=tmp_path)
    word, loss = run(tmp_path / "build" / "first", cwd=tmp_path).split()
    assert word == "loss" and 0 <= float(loss) < 1e-6


@pytest.mark.slow
def test_find_package_with_wider_default_kinds(prefix: Path, tmp_path: Path) -> None:
    flags = "-DCMAKE_Fortran_FLAGS=-fdefault-real-8 -fdefault-integer-8"
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", flags)
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


GNU_FLAGS = {
    "f2003": "-std=f2003 -fno-realloc-lhs",
    "f2008": "-std=f2008",
    "strict": "-std=f2018 -pedantic -Wall -Wextra -Werror",
    "fixed": "-ffixed-form -fno-automatic",
    "short": "-ffree-line-length-80",
}


@pytest.mark.slow
@pytest.mark.parametrize("flags", GNU_FLAGS.values(), ids=GNU_FLAGS)
def test_flags_of_the_project_do_not_concern_the_modules(
    flags: str, prefix: Path, is_gnu_fortran: bool, tmp_path: Path
) -> None:
    if not is_gnu_fortran:
        pytest.skip("these are flags of gfortran")
    c_flags = "-DCMAKE_C_FLAGS=-std=c89 -pedantic-errors -Werror"
    options = (f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_Fortran_FLAGS={flags}", c_flags)
    told = configure("find_package", tmp_path, *options)
    assert "passes descriptors to C - yes" in told and "takes arrays of any rank - yes" in told
    run("cmake", "--build", tmp_path / "build", "--target", "ftn_pytorch_fortran", cwd=tmp_path)


@pytest.mark.slow
def test_explicit_ranks(prefix: Path, tmp_path: Path) -> None:
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", "-DFTN_PYTORCH_ARG_RANKS=ON")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_direct_path_alone(prefix: Path, tmp_path: Path) -> None:
    """The plug-in finds libtorch where no Python has loaded it: its environment may be in the source tree."""
    if not (prefix / "lib" / "libftn_pytorch_direct.so").exists():
        pytest.skip("built without the direct path")
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", "-DPROGRAM=direct.f90")
    torch.jit.script(torch.nn.Linear(3, 1)).save(str(tmp_path / "model.pt"))
    run(program, "model.pt", cwd=tmp_path, FTN_PYTORCH_PYTHON="/there/is/no/python")


def test_command(prefix: Path, tmp_path: Path) -> None:
    command = prefix / "bin" / "ftn_pytorch"
    assert run(command, "--cmakedir", cwd=tmp_path) == f"{prefix}/lib/cmake/ftn_pytorch\n"
    (tmp_path / "link").symlink_to(command)
    python = {"FTN_PYTORCH_PYTHON": sys.executable}
    found = {
        line["name"]: line["found"]
        for line in json.loads(run("./link", "doctor", "--json", cwd=tmp_path, **python))["findings"]
    }
    assert found["ftn_pytorch"].endswith(f"{prefix}/lib/libftn_pytorch.so") and "PYTHONPATH" not in found
    run("./link", "pack", SCRIPT, "--output", "x.pack", cwd=tmp_path, **python)
    # The names that programs have for the files
    assert f"{prefix}/share/ftn_pytorch/python/ftn_pytorch/_embed.py".encode() in (tmp_path / "x.pack").read_bytes()
    assert run(command, "--version", cwd=tmp_path, VIRTUAL_ENV="/there/is/none")  # that of the build
    missing = attempt(command, "--version", cwd=tmp_path, FTN_PYTORCH_PYTHON="/there/is/none")
    assert missing.returncode == 2 and "/there/is/none, the Python that programs take, is not there" in missing.stderr


@pytest.mark.slow
def test_an_installed_copy_tests_itself(prefix: Path, tmp_path: Path) -> None:
    """Among the tests is a Fortran program that is compiled against the copy."""
    command = (prefix / "bin" / "ftn_pytorch", "doctor", "--test")
    said = run(*command, cwd=tmp_path, FTN_PYTORCH_PYTHON=sys.executable)
    assert "\npassed     Fortran program: compiled by " in said and said.endswith("\nPASSED\n")
    failed = attempt(*command, cwd=tmp_path, FTN_PYTORCH_PYTHON=sys.executable, FC="/bin/false")
    assert failed.returncode == 1 and failed.stdout.endswith("\nFAILED: Fortran program\n")
    tools = tmp_path / "without_make"
    tools.mkdir()
    for name in ("cmake", "dirname", "readlink"):
        (tools / name).symlink_to(shutil.which(name))
    named = {"PATH": str(tools), "FTN_PYTORCH_PYTHON": sys.executable, "FC": shutil.which("gfortran") or "gfortran"}
    assert "there is no make (CMAKE_GENERATOR=Ninja needs none)" in run(*command, cwd=tmp_path, **named)


@pytest.mark.slow
def test_a_new_project(prefix: Path, tmp_path: Path) -> None:
    """It is built against the package, and its own tests pass: the loss falls, and a restart gives the same numbers."""
    run(prefix / "bin" / "ftn_pytorch", "new", "wind", cwd=tmp_path)
    project = tmp_path / "wind"
    options = ("-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPython_EXECUTABLE={sys.executable}")
    run("cmake", "-S", project, "-B", project / "build", *options, cwd=tmp_path)
    run("cmake", "--build", project / "build", cwd=tmp_path)
    told = run("ctest", "--test-dir", project / "build", "--output-on-failure", cwd=tmp_path)
    assert "100% tests passed" in told and "out of 2" in told


def test_licence_and_documentation_are_installed(prefix: Path) -> None:
    folder = prefix / "share" / "doc" / "ftn_pytorch"
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    for page in [*re.findall(r"\((docs/[\w/-]+\.md)", (ROOT / "README.md").read_text()), "README.md"]:
        assert (folder / page).is_file(), page


@pytest.mark.slow
def test_add_subdirectory(tmp_path: Path) -> None:
    program = build("add_subdirectory", tmp_path, f"-DPython_EXECUTABLE={sys.executable}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"
    built = tmp_path / "build" / "ftn_pytorch"
    assert not any((built / part).exists() for part in ("tests", "examples", "benchmarks")), "more than is needed"


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_free_threaded_python_is_refused(tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "free", cwd=tmp_path)
    python = tmp_path / "free" / "bin" / "python"
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    (Path(packages) / "free.pth").write_text("import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n")
    done = attempt("cmake", "-S", HERE / "add_subdirectory", "-B", tmp_path / "build", "-G", "Ninja",
                   f"-DPython_EXECUTABLE={python}", cwd=tmp_path)  # fmt: skip
    assert done.returncode != 0
    assert "is a free-threaded Python, and this library needs one" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_makefile(prefix: Path, cache: dict[str, str], is_gnu_fortran: bool, tmp_path: Path) -> None:
    for file in (HERE / "makefile" / "Makefile", HERE / "program.f90"):
        shutil.copy(file, tmp_path)
    header = Path(cache["FTN_PYTORCH_ISO_FORTRAN_BINDING"])
    if is_gnu_fortran:
        flags = ["FFLAGS=-std=f2008 -ffree-line-length-80 -Wall -Werror"]
    else:
        flags = [f"CFLAGS=-I{header.parent}", "module_flags=", "modules=$(call ftn_pytorch,--variable=fortran_sources)"]
    compiler = f"FC={cache['CMAKE_Fortran_COMPILER']}"
    run("make", compiler, *flags, cwd=tmp_path, PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    assert run(tmp_path / "program", SCRIPT, cwd=tmp_path) == "15\n"


@pytest.mark.slow
def test_c(prefix: Path, tmp_path: Path) -> None:
    program = build("c", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


@pytest.mark.slow
def test_a_project_in_c_with_a_part_in_fortran(prefix: Path, tmp_path: Path) -> None:
    program = build("two", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}").parent / "fortran" / "program"
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"


@pytest.mark.slow
def test_add_subdirectory_comes_first(prefix: Path, tmp_path: Path) -> None:
    """A dependency of the project may look for the package that the project itself builds."""
    project = tmp_path / "project"
    project.mkdir()
    lines = (HERE / "add_subdirectory" / "CMakeLists.txt").read_text().replace("../../..", str(ROOT))
    lines = lines.replace("../program.f90", str(HERE / "program.f90"))
    (project / "CMakeLists.txt").write_text(lines + "find_package(ftn_pytorch REQUIRED)\n")
    options = ("-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "-S", project, "-B", tmp_path / "build", *options, cwd=tmp_path)


@pytest.mark.slow
def test_moved_to_a_path_with_a_space(build_dir: Path, tmp_path: Path) -> None:
    moved = install(build_dir, tmp_path / "prefix").rename(tmp_path / "moved prefix")
    program = build("find_package", tmp_path, f"-DCMAKE_PREFIX_PATH={moved}")
    assert run(program, SCRIPT, cwd=tmp_path) == "15\n"
    run(moved / "bin" / "first", cwd=moved / "share" / "ftn_pytorch" / "examples" / "first")


@pytest.mark.slow
def test_profile_build_writes_gmon_out(cache: dict[str, str], is_gnu_fortran: bool, tmp_path: Path) -> None:
    folder, quick = tmp_path / "build", tmp_path / "quick.cmake"
    # Whether the core is optimised makes no difference here, but for the time that it takes.
    quick.write_text("add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-O0>)\n")
    configure = ("cmake", "--preset", "profile", "-B", folder, f"-DPython_EXECUTABLE={sys.executable}",
                 f"-DCMAKE_Fortran_COMPILER={cache['CMAKE_Fortran_COMPILER']}",
                 f"-DCMAKE_PROJECT_INCLUDE={quick}")  # fmt: skip
    if not is_gnu_fortran:
        refused = attempt(*configure, cwd=ROOT)
        assert refused.returncode != 0
        assert "The build type Profile is for gprof" in " ".join(refused.stderr.split())
        return
    run(*configure, cwd=ROOT)
    run("cmake", "--build", folder, "--target", "first", cwd=ROOT)
    shutil.copy(ROOT / "examples" / "first" / "first.py", tmp_path)
    run(folder / "examples" / "first" / "first", cwd=tmp_path)
    assert (tmp_path / "gmon.out").stat().st_size > 0
