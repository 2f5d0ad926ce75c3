# SPDX-License-Identifier: MIT
"""The command ``bench``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..errors import FtnPytorchError
from . import figures, machine, report
from .measure import Outcome, Setting, measure_case
from .plan import CASES, FULL, PATHS, QUICK

SCHEMA = 1
RESULTS = "results.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--build", type=Path, default=Path("build/release"), help="build folder (default: %(default)s)")
    parser.add_argument("--sources", type=Path, default=Path("benchmarks"), help="benchmarks/ of the sources")
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="default: %(default)s")
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all; may be repeated")
    parser.add_argument("--path", action="append", choices=list(PATHS), help="default: all; may be repeated")
    parser.add_argument("--quick", action="store_true", help="one small size of each case, a few calls")
    parser.add_argument("--plot", action="store_true", help="draw pictures, too")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help=f"measure nothing, read {RESULTS}")


def run(chosen: argparse.Namespace) -> int:
    """Measure, write results.json and results.md, draw. 1 if a result was wrong, 2 if nothing could be measured."""
    try:
        document = json.loads(chosen.source.read_text()) if chosen.source else measure(chosen)
        chosen.output.mkdir(parents=True, exist_ok=True)
        text = report.markdown(document)
        (chosen.output / "results.md").write_text(text)
        print(text)
        if chosen.plot:
            for file in figures.draw(document, chosen.output):
                print(f"picture: {file}")
    except FtnPytorchError as failure:
        print(failure, file=sys.stderr)
        return 2
    except (OSError, ValueError, KeyError) as failure:
        print(f"{chosen.source or chosen.output}: {type(failure).__name__}: {failure}", file=sys.stderr)
        return 2
    return 1 if document["wrong"] else 0


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """The document of one run, written too; its times are in the unit that their names end with."""
    start = time.monotonic()
    driver = chosen.build / "benchmarks" / "paths" / "bench_driver"
    sources = chosen.sources / "paths"
    models = chosen.build / "benchmarks" / "models"
    if not driver.is_file():
        raise FtnPytorchError("FILE", f"there is no {driver}: cmake --build {chosen.build} --target bench_driver")
    if not (sources / "script.py").is_file():
        raise FtnPytorchError("FILE", f"there is no {sources / 'script.py'}: name benchmarks/ in --sources")
    cases = chosen.case or list(CASES)
    paths = chosen.path or list(PATHS)
    effort = QUICK if chosen.quick else FULL
    core = max(os.sched_getaffinity(0))
    info = machine.machine_info(core)
    sizes = {case: (CASES[case].quick,) if chosen.quick else CASES[case].sizes for case in cases}
    _write_models(chosen.sources, models, sizes, chosen.quick)
    setting = Setting(
        driver=driver.resolve(),
        sources=sources.resolve(),
        models=models.resolve(),
        core=core,
        manifest=json.loads((models / "manifest.json").read_text()),
        environment={
            "BENCH_SCRIPT": str((sources / "script.py").resolve()),
            "FTN_PYTORCH_PYTHON": sys.executable,
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": str((chosen.build / "benchmarks" / "inductor").resolve()),
        },
    )
    whole = Outcome()
    for case in cases:
        part = measure_case(case, sizes[case], paths, setting, effort, lambda text: print(f"== {text}", flush=True))
        for field in dataclasses.fields(Outcome):
            getattr(whole, field.name).extend(getattr(part, field.name))
        fortran = [row["description"] for row in whole.cold if row["description"].startswith("Fortran")]
        document = {
            "schema": SCHEMA,
            "machine": {**info, "load_after": round(os.getloadavg()[0], 2)},
            "versions": machine.versions(),
            "driver": f"{fortran[0].removeprefix('Fortran ')}, {_build_type(chosen.build)}" if fortran else "not used",
            "uses_torchscript": os.environ.get("USETS", "0") not in ("", "0"),
            "effort": dataclasses.asdict(effort),
            "models": setting.manifest["problems"],
            "seconds": time.monotonic() - start,
            **dataclasses.asdict(whole),
        }
        # After each case, so that what was measured is there even if the run is ended.
        chosen.output.mkdir(parents=True, exist_ok=True)
        (chosen.output / RESULTS).write_text(json.dumps(document, indent=1) + "\n")
    return document


def _build_type(build: Path) -> str:
    lines = (build / "CMakeCache.txt").read_text().splitlines()
    return next((line.partition("=")[2] for line in lines if line.startswith("CMAKE_BUILD_TYPE")), "unknown build type")


def _write_models(sources: Path, folder: Path, sizes: dict[str, tuple[int, ...]], quick: bool) -> None:
    """The files that are missing; a smoke run does without what takes minutes to compile, unless it is there."""
    for case, some in sizes.items():
        command = [sys.executable, str(sources / "models.py"), str(folder), "--case", case]
        for size in some:
            command += ["--size", str(size)]
        if quick:
            command += ["--formats", "pt,onnx"]
        done = subprocess.run(command, stdout=sys.stderr, check=False)
        if done.returncode != 0:
            raise FtnPytorchError("SCRIPT", f"{' '.join(command)} failed with code {done.returncode}")
