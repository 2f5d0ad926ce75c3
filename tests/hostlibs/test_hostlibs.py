# SPDX-License-Identifier: MIT
"""Programs with libraries of their own: each path gives the bits of plain Python, or refuses and names the library.

results.md has what was found, as tables. Each run adds its rows to hostlibs-*.md of the build,
and compares them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("torch")

import numpy as np  # noqa: E402
from mpi_environment import MPI_ENVIRONMENT  # noqa: E402
from programs import DIRECT, PACKAGES, PROGRAMS, PYTHON, WITH_PACKAGES, Program, found, missing, search_path  # noqa: E402

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = Path(__file__).parent / "results.md"
COLUMNS = {
    "script": "algebra",
    "recorded": "recorded",
    "`.pt`": "torchscript-direct",
    "`.pt`, Python": "torchscript-python",
    "`.ftr`": "recording-direct",
    "`.ftr`, Python": "recording-python",
    "tensors": "tensors",
    '`per="node"`': "node",
}
PLAIN = """
import importlib, sys
import numpy, torch
x = torch.from_numpy(numpy.fromfile("input").reshape(2, 96, 96))
importlib.import_module(sys.argv[1]).ftn_pytorch_forward(x).numpy().tofile(f"{sys.argv[1]}.expected")
"""
pytestmark = pytest.mark.slow


class Built:
    """Objects of the programs, and files that plain Python has made."""

    def __init__(self, folder: Path, build: Path, cache: dict[str, str]) -> None:
        self.folder, self.build, self.cache = folder, build, cache
        self.folders: dict[tuple[Program, bool], Path] = {}
        self.has_mpi = cache.get("MPI_RESULT_Fortran_test_mpi_F08_MODULE") == "TRUE"
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
            **MPI_ENVIRONMENT,
            "FTN_PYTORCH_PYTHON": cache["Python_EXECUTABLE"],
            "ftn_pytorch_ROOT": str(build),
            "FPT_HOST_LIBPYTHON": os.path.join(*sysconfig.get_config_vars("LIBDIR", "INSTSONAME")),
            "OMP_NUM_THREADS": "1",
        }
        paths = [str(HERE), str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
        python = {**self.environment, "PYTHONPATH": ":".join(paths)}
        run([sys.executable, HERE / "algebra.py", folder], folder, python)
        for stem, package in PACKAGES.items():
            if importlib.util.find_spec(package):
                run([sys.executable, "-c", PLAIN, stem], folder, python)
        fortran = cache["CMAKE_Fortran_COMPILER"]
        modules = ["-O1", f"-I{build / 'fortran' / 'ftn_pytorch_fortran_modules'}"]
        run([fortran, "-c", *modules, HERE / "by_tensors.f90", HERE / "host.F90", HERE / "main.f90"], folder)
        if self.has_mpi:
            mpi = ["-DWITH_MPI", f"-I{cache['MPI_Fortran_MODULE_DIR']}", "-o", "host_mpi.o"]
            run([fortran, "-c", *modules, *mpi, HERE / "host.F90"], folder)

    def program(self, program: Program, mpi: bool) -> Path:
        """Linked, in a folder of its own."""
        folder = self.folders.setdefault((program, mpi), self.folder / str(len(self.folders)))
        if folder.exists():
            return folder
        folder.mkdir()
        for file in ("input", "algebra.pt", "algebra.ftr"):
            (folder / file).symlink_to(self.folder / file)
        for script in HERE.glob("*.py"):
            (folder / script.name).symlink_to(script)
        fortran, c, cpp = (self.cache[f"CMAKE_{language}_COMPILER"] for language in ("Fortran", "C", "CXX"))
        main = self.folder / "main.o"
        flags = list(program.flags)
        if program.main != "main.f90":
            main = folder / "main.o"
            compiler = c if program.main.endswith(".c") else cpp
            run([compiler, "-c", "-O1", *program.main_flags, HERE / program.main, "-o", main], folder)
            flags += ["-fno-fortran-main"] if "flang" in fortran else []
        run([c, "-c", "-O1", *(f"-D{each}" for each in program.own), HERE / "own.c"], folder)
        libraries = [found(c, each) or each for each in program.libraries]
        parents = {str(each.parent) for each in libraries if isinstance(each, Path)}
        folders = [self.build / "lib", *parents, *search_path()]
        options = ["-Wl,--no-as-needed", "-Wl,--disable-new-dtags", *(f"-Wl,-rpath,{each}" for each in folders)]
        objects = [main, self.folder / ("host_mpi.o" if mpi else "host.o"), self.folder / "by_tensors.o", "own.o"]
        ours = [self.build / "fortran" / "libftn_pytorch_fortran.a", f"-L{self.build / 'lib'}", "-lftn_pytorch"]
        names = self.cache["MPI_Fortran_LIB_NAMES"].split(";") if mpi else []
        theirs = [self.cache[f"MPI_{name}_LIBRARY"] for name in names]
        last = ["-lstdc++", "-lpthread", "-ldl", "-lm"]
        run([fortran, "-o", "program", *options, *objects, *ours, *libraries, *flags, *theirs, *last], folder)
        return folder

    def output(self, program: Program, paths: str, ranks: int = 0, **variables: str) -> str:
        """Of one process without MPI, or of ranks; begins with the exit status."""
        folder = self.program(program, bool(ranks))
        command: list = ["./program"]
        if program.preloaded:
            preloaded = found(self.cache["CMAKE_C_COMPILER"], program.preloaded)
            command = ["env", f"LD_PRELOAD={preloaded or program.preloaded}", *command]
        if ranks:
            command = [self.cache["MPIEXEC_EXECUTABLE"], self.cache["MPIEXEC_NUMPROC_FLAG"], str(ranks), *command]
        environment = {**self.environment, "FPT_HOST_PATHS": paths, **variables}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        return f"exit status {done.returncode}\n{done.stdout}{done.stderr}"

    def verdicts(self, program: Program, paths: str, ranks: int = 0, **variables: str) -> dict[str, str]:
        """By path."""
        output = self.output(program, paths, ranks, **variables)
        folder = self.program(program, bool(ranks))
        (folder / "output").write_text(output)
        return {path: self.verdict(folder, program, path, output) for path in paths.split()}

    def verdict(self, folder: Path, program: Program, path: str, output: str) -> str:
        if not (folder / f"{path}.said").exists():
            return f"crash: {output}"
        status, _, text = (folder / f"{path}.said").read_text().partition(" ")
        names_a_library = any(name in text for name in program.named)
        if status != "0":
            return "refused" if names_a_library else f"failed: {text}"
        if not output.startswith("exit status 0\n"):
            return f"failed in the end: {output}"
        numbers = np.fromfile(folder / f"{path}.found")
        expected = np.fromfile(self.folder / (f"{path}.expected" if path in PACKAGES else "expected"))[: len(numbers)]
        if numbers.tobytes() == expected.tobytes() and len(numbers) > 0:
            return "same bits"
        is_close = len(numbers) == len(expected) > 0 and self.is_close(numbers, expected)
        if is_close and any(name in output for name in program.named):
            return "warned"
        return f"wrong: {output}"

    def is_close(self, numbers: np.ndarray, expected: np.ndarray) -> bool:
        """Each result by itself, as far as its type goes: they take turns in pairs of single and double precision."""
        sizes = [*map(int, (self.folder / "sizes").read_text().split())]
        ends = np.cumsum(sizes)
        return all(
            np.allclose(numbers[end - size : end], part, rtol=0, atol=1e-3 * np.abs(part).max())
            for end, size in zip(ends, sizes)
            if end <= len(numbers)
            for part in [expected[end - size : end]]
        )


def run(command: list, folder: Path, variables: dict[str, str] | None = None) -> None:
    done = subprocess.run([*map(str, command)], cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def built(tmp_path_factory, build_dir, cache):
    return Built(tmp_path_factory.mktemp("hostlibs"), build_dir, cache)


def require_what_is_needed(program: Program, built: Built) -> None:
    if not built.has_mpi:
        pytest.skip("there is no MPI with module mpi_f08 for this compiler")
    absent = missing(program, built.cache["CMAKE_C_COMPILER"])
    if absent:
        pytest.skip(f"LIBRARY_PATH has no {absent}")


def require_row(names: list[str], verdicts: list[str], table: str, build: Path) -> None:
    """The page has it in a table; what was found stays in the build."""
    details = [verdict for verdict in verdicts if ": " in verdict]
    found_row = f"| {' | '.join(names + [verdict.partition(':')[0] for verdict in verdicts])} |"
    with (build / f"hostlibs-{table}.md").open("a") as file:
        file.write(found_row + "\n")
    rows = PAGE.read_text().partition(f"<!-- {table} -->")[2].splitlines()
    assert found_row in rows, f"found, and {PAGE.name} has another row or none:\n{found_row}\n" + "\n".join(details)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_each_path_gives_the_bits_of_plain_python_or_refuses(program, built):
    require_what_is_needed(program, built)
    verdicts = built.verdicts(program, PYTHON) | built.verdicts(program, DIRECT, FTN_PYTORCH_PYTHON="/nonexistent")
    verdicts |= built.verdicts(program, "node", ranks=1)
    require_row([program.name], [verdicts[path] for path in COLUMNS.values()], "paths", built.build)


@pytest.mark.parametrize(
    "program, script",
    [pytest.param(each, script, id=f"{script} {each.name}") for each in WITH_PACKAGES for script in each.scripts],
)
def test_packages_of_scripts_have_their_own_libraries(program, script, built):
    require_what_is_needed(program, built)
    pytest.importorskip(PACKAGES[script])
    verdict = built.verdicts(program, script, ranks=2 if script == "with_mpi4py" else 0)[script]
    require_row([program.name, PACKAGES[script]], [verdict], "packages", built.build)


# By script, and by FTN_PYTORCH_DEEPBIND
SEEN_BY_A_TOOL = {
    ("with_h5py", "1"): "1 files of Python, 0 files of HDF5",
    ("with_h5py", "0"): "1 files of Python, [1-9] files of HDF5",
    ("with_mpi4py", "1"): "tool: 0 reductions",
    ("with_mpi4py", "0"): "tool: 1 reductions",
}


@pytest.mark.parametrize("script, flag", SEEN_BY_A_TOOL)
def test_what_a_tool_sees_of_the_calls_of_modules(script, flag, built):
    pytest.importorskip(PACKAGES[script])
    if script == "with_mpi4py" and not built.has_mpi:
        pytest.skip("there is no MPI with module mpi_f08 for this compiler")
    tool = built.folder / "libtool.so"
    run([built.cache["CMAKE_C_COMPILER"], "-shared", "-fPIC", "-o", tool, HERE / "tool.c", "-ldl"], built.folder)
    ranks = 2 if script == "with_mpi4py" else 0
    program = Program("a program with a tool", preloaded=str(tool))
    output = built.output(program, script, ranks, FTN_PYTORCH_DEEPBIND=flag)
    assert output.startswith("exit status 0\n") and re.search(SEEN_BY_A_TOOL[script, flag], output), output
