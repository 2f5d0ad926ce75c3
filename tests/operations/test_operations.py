# SPDX-License-Identifier: MIT
"""The same operations on one model by every path: equal status, equal values bit for bit, equal settings of torch.

The modules of ``operations.f90`` have the list: a new operation is two lines there, a new path a case of
``opening.f90`` and a word here. ``by_design.py`` has what may differ, with both values; where it does not differ so, it
is a failure, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")

from by_design import BETWEEN_FORMATS, BETWEEN_PATHS, CHANGED, DRAWS, MISSING, Row  # noqa: E402
from mpi_environment import MPI_ENVIRONMENT  # noqa: E402

HERE = Path(__file__).parent
PATHS = {
    "model.pt": ["direct", "python", "node", "gpu"],
    "model.ftr": ["direct", "python", "rank", "node", "gpu"],
    "model.py": ["python", "rank", "node", "gpu"],
}
"""The first path of a file is what the others are compared with. per="rank" is not for TorchScript."""
RUNS = [f"{file} {path}" for file, paths in PATHS.items() for path in paths]
NOTHING = ("-", "")

Seen = dict[str, tuple[str, str]]


def test_the_same_operations_by_every_path(build_dir, cache, tmp_path):
    """One test, so that workers of pytest do not make the runs twice."""
    program = build_dir / "tests" / "operations" / "operations"
    if not program.exists():
        pytest.skip("built without mpi_f08")
    seen = all_runs(program, cache, build_dir, tmp_path)
    faults = [
        *between_paths(seen),
        *between_formats(seen),
        *(fault for each in seen for fault in changed_though_refused(each, seen[each])),
        *(fault for each, found in seen.items() for fault in settings_that_changed(each, found)),
    ]
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def all_runs(program: Path, cache: dict[str, str], build_dir: Path, folder: Path) -> dict[str, Seen]:
    """By "FILE PATH": what each operation gave, its status and the arrays that it changed."""
    files = folder / "files"
    files.mkdir()
    package = {"PYTHONPATH": str(HERE.parents[1] / "python"), "ftn_pytorch_ROOT": str(build_dir)}
    run([sys.executable, HERE / "make_files.py"], files, package)
    shutil.copy(files / "settings.py", folder)
    for each in RUNS:
        shutil.copytree(files, folder / each.replace(" ", "."))
    command = [cache["MPIEXEC_EXECUTABLE"], cache["MPIEXEC_NUMPROC_FLAG"], "1", program]
    variables = {**MPI_ENVIRONMENT, "FTN_PYTORCH_PYTHON": cache["Python_EXECUTABLE"]}
    run([*command, *(word for each in RUNS for word in each.split())], folder, variables)
    return {each: read(folder / each.replace(" ", ".") / "seen") for each in RUNS}


def run(command: list, folder: Path, variables: dict[str, str]) -> None:
    inherited = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environment = {**inherited, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def read(file: Path) -> Seen:
    found: Seen = {}
    for line in file.read_text().splitlines():
        theme, name, status, changed = (each.strip() for each in line.split("|"))
        name = f"{theme} | {name}"
        assert name not in found, f"two operations of {file} have the name {name}"
        found[name] = (status, changed)
    assert len(found) > 80
    return found


def of(rows: list[Row], each: str) -> dict[str, tuple[str, bool]]:
    """Of rows of by_design.py: statuses and whether values are equal, by operation."""
    found: dict[str, tuple[str, bool]] = {}
    for where, operations, statuses, values, _ in rows:
        assert set(where.split(", ")) <= {*RUNS, "formats"}, f"by_design.py names {where}"
        for operation in operations if each in where.split(", ") else ():
            assert operation not in found, f"by_design.py has {operation} twice for {each}"
            found[operation] = (statuses, values == "same")
    return found


def differences(who: str, all: list[Seen], allowed: dict[str, tuple[str, bool]]) -> Iterator[str]:
    """Between what several runs saw, where it is not what is allowed."""
    for name in dict.fromkeys([*(name for each in all for name in each), *allowed]):
        if name.startswith("settings | random numbers"):
            continue  # see settings_that_changed
        came = [each.get(name, NOTHING) for each in all]
        found = (" ".join(status or "''" for status, _ in came), len({values for _, values in came}) == 1)
        wanted = allowed.get(name)
        if found == wanted or (wanted is None and len(set(came)) == 1 and came[0] != NOTHING):
            continue
        shown = "; ".join(f"{status} {values}".strip() for status, values in came)
        yield f"{who}: {name}: {shown}" + (f", by_design.py has {wanted}" if wanted else "")


def between_paths(seen: dict[str, Seen]) -> Iterator[str]:
    for file, (first, *others) in PATHS.items():
        for path in others:
            wanted, came = seen[f"{file} {first}"], seen[f"{file} {path}"]
            run = f"{file} {path}"
            themes = [each for who in (path, run) for each in MISSING.get(who, ()) if each not in MISSING.get(file, ())]
            yield from is_missing(run, themes, wanted, came)
            wanted = without(themes, wanted)
            yield from differences(f"{file}, {first} and {path}", [wanted, came], of(BETWEEN_PATHS, run))


def between_formats(seen: dict[str, Seen]) -> Iterator[str]:
    """Where the promise is the same: a model and its method, a recording and its function, a function of a script."""
    firsts = {file: seen[f"{file} {paths[0]}"] for file, paths in PATHS.items()}
    for file in firsts.keys() & MISSING.keys():
        yield from is_missing(file, MISSING[file], firsts["model.pt"], firsts[file])
        firsts = {each: without(MISSING[file], found) for each, found in firsts.items()}
    yield from differences(", ".join(firsts), [*firsts.values()], of(BETWEEN_FORMATS, "formats"))


def is_missing(who: str, themes: Sequence[str], wanted: Seen, came: Seen) -> Iterator[str]:
    """What is wrong with the themes that by_design.py has as missing: somebody else has them, and this one not."""
    for theme in themes:
        there = [any(name.startswith(f"{theme} | ") for name in each) for each in (wanted, came)]
        if there != [True, False]:
            yield f"by_design.py says that {who} has no theme {theme}, and it has, or nobody has"


def without(themes: Sequence[str], found: Seen) -> Seen:
    return {name: value for name, value in found.items() if name.partition(" | ")[0] not in themes}


def changed_though_refused(each: str, found: Seen) -> Iterator[str]:
    """A failure leaves all arrays as they were."""
    for name, (status, values) in found.items():
        labels = [value.partition("=")[0] for value in values.split()]
        if status.isdigit() and status != "0" and labels and labels != CHANGED.get(name):
            yield f"{each}: {name}: refused with {status}, and {', '.join(labels)} changed"


def settings_that_changed(each: str, found: Seen) -> Iterator[str]:
    if found["settings | before"] != found["settings | after"]:
        yield f"{each}: settings of torch changed"
    draws = found["settings | random numbers before"] != found["settings | random numbers after"]
    if draws != (each in DRAWS):
        yield f"{each}: the state of random numbers {'changed' if draws else 'did not change'}"
