# SPDX-License-Identifier: MIT
"""All cases on all paths: networks on every way from Fortran, beside plain Python.

run.py paths                                              everything that is not there: models, measurements, tables
run.py paths --quick                                      one small size of each case, a few calls
run.py paths --case mlp --path script --path direct --plot
run.py paths --starts 15 --case train_step                start and memory of processes only, 15 of each path

It needs a build with the target bench_driver.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import machine
from harness.turns import FULL, QUICK

from .measure import Outcome, Setting, measure_case, measure_starts
from .plan import CASES, COMPILED_CASES, COMPILED_PATHS, FILES, PATHS, PEERS, SUFFIXES
from .report import markdown

__all__ = ["draw", "markdown", "measure", "options"]
HERE = Path(__file__).resolve().parent


def options(parser: argparse.ArgumentParser) -> None:
    """What to measure."""
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all; may be repeated")
    parser.add_argument("--path", action="append", choices=list(PATHS), help="default: all; may be repeated")
    parser.add_argument("--quick", action="store_true", help="one small size of each case, a few calls")
    parser.add_argument("--starts", type=int, metavar="N", help="only what N processes of each path take to start")
    parser.add_argument("--compiled", action="store_true", help="the cases and paths of compiled steps")


def draw(found: dict[str, Any], folder: Path) -> list[Path]:
    """Pictures of all cases."""
    from .figures import draw

    return draw(found, folder)


def measure(chosen: argparse.Namespace, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The document of one run; its times are in the unit that their names end with."""
    if chosen.compiled:
        chosen.case, chosen.path = chosen.case or list(COMPILED_CASES), chosen.path or list(COMPILED_PATHS)
    start = time.monotonic()
    driver = machine.program_of(chosen.build, "paths", "bench_driver")
    models = driver.parents[1] / "models"
    effort = (QUICK if chosen.quick else FULL).of(chosen.rounds)
    sizes = {case: (CASES[case].quick,) if chosen.quick else CASES[case].sizes for case in chosen.case or CASES}
    environment = {
        **machine.worker_environment(),
        "BENCH_SCRIPT": str(HERE / "script.py"),
        "BENCH_PACKAGE": machine.package_of(chosen.build),
        "TORCHINDUCTOR_CACHE_DIR": str(driver.parents[1] / "inductor"),
    }
    with machine.described() as found:
        write_models(models, sizes, formats_of(chosen), environment["BENCH_PACKAGE"])
        manifest = json.loads((models / "manifest.json").read_text())
        setting = Setting(driver, HERE, models, machine.last_core(), manifest, environment)
        for path in chosen.path or PATHS:
            if path in PEERS and (library := setting.library(path)):
                say(f"{PATHS[path]} is {library}")
        whole = Outcome()
        found |= {
            "effort": dataclasses.asdict(effort),
            "part": part_of(chosen),
            "models": manifest["problems"],
            "files": files_of(setting, sizes),
        }
        for case in sizes:
            paths = chosen.path or list(PATHS)
            first = dict.fromkeys(paths, sizes[case][0])
            if not chosen.starts:
                part = measure_case(case, sizes[case], paths, setting, effort, say)
                whole.extend(part)
                # Not every path has all sizes.
                first = {row["path"]: row["size"] for row in reversed(part.results)}
            for size in sorted(set(first.values())):
                some = [path for path in paths if first.get(path) == size]
                whole.extend(measure_starts(case, size, some, setting, chosen.starts or effort.starts))
            say(f"{case}: {len([row for row in whole.cold if row['case'] == case])} paths have started")
            fortran = [row["description"] for row in whole.cold if row["description"].startswith("Fortran")]
            built = machine.build_type(chosen.build)
            found["driver"] = f"{fortran[0].removeprefix('Fortran ')}, {built}" if fortran else "not used"
            found |= {"seconds": time.monotonic() - start, **dataclasses.asdict(whole)}
            keep(found)
    return found


def part_of(chosen: argparse.Namespace) -> str:
    """The options of a run that measures less than everything; empty for a whole one."""
    options = [f"--case {case}" for case in chosen.case or ()] + [f"--path {path}" for path in chosen.path or ()]
    options += ["--quick"] if chosen.quick else []
    return " ".join(options + ([f"--starts {chosen.starts}"] if chosen.starts else []))


def say(text: str) -> None:
    """What is done."""
    print(f"== {text}", flush=True)


def files_of(setting: Setting, sizes: dict[str, tuple[int, ...]]) -> list[dict[str, Any]]:
    """Bytes of the files of each model."""
    names = [f"{case}_{size}" for case, some in sizes.items() for size in some]
    stems = dict.fromkeys(facts["stem"] for name in names if (facts := setting.manifest["problems"].get(name)))
    found = {stem: {suffix: setting.models / f"{stem}.{suffix}" for suffix in FILES} for stem in stems}
    return [
        {"model": stem, **{suffix: file.stat().st_size for suffix, file in some.items() if file.is_file()}}
        for stem, some in found.items()
    ]


def formats_of(chosen: argparse.Namespace) -> list[str]:
    """What the chosen paths load, and the checkpoint; a quick run does without what takes minutes to compile, unless it
    is there."""
    wanted = {"ckpt", *(SUFFIXES.get(path) for path in chosen.path or PATHS)}
    return [suffix for suffix in FILES if suffix in wanted and not (chosen.quick and suffix.endswith("pt2"))]


def write_models(folder: Path, sizes: dict[str, tuple[int, ...]], formats: list[str], package: str) -> None:
    """The files that are missing. An exporter that ends its process leaves sizes without a problem: they become lines
    of the result."""
    # code computes with one thread, as it is measured
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "BENCH_PACKAGE": package}
    for case, some in sizes.items():
        command = [sys.executable, str(HERE.parent / "models.py"), str(folder), "--case", case]
        for size in some:
            command += ["--size", str(size)]
        command += ["--formats", ",".join(formats)]
        subprocess.run(command, stdout=sys.stderr, check=False, env=environment)
