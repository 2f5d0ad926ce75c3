# SPDX-License-Identifier: MIT
"""Measure all cases on all paths, or take what was measured; write results.json and results.md, draw pictures.

run.py                                              everything that is not there: models, measurements, tables
run.py --quick                                      one small size of each case, a few calls
run.py --case mlp --path script --path direct --plot
run.py --starts 15 --case train_step                start and memory of processes only, 15 of each path
run.py --from out/benchmarks/results.json --output benchmarks/paths --plot    measure nothing

It needs a build with the target bench_driver. Exit code 1 if a result was wrong, 2 if nothing could be measured.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from analysis import document as files  # noqa: E402
from analysis import machine, report  # noqa: E402
from analysis.measure import Outcome, Setting, measure_case  # noqa: E402
from analysis.plan import CASES, COMPILED_CASES, COMPILED_PATHS, FILES, FULL, PATHS, PEERS, QUICK  # noqa: E402
from analysis.starts import measure_starts  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"), help="build folder (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="default: %(default)s")
    parser.add_argument("--name", default="results", help="of the files NAME.json and NAME.md (default: %(default)s)")
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all; may be repeated")
    parser.add_argument("--path", action="append", choices=list(PATHS), help="default: all; may be repeated")
    parser.add_argument("--quick", action="store_true", help="one small size of each case, a few calls")
    parser.add_argument("--starts", type=int, metavar="N", help="only what N processes of each path take to start")
    parser.add_argument("--compiled", action="store_true", help="the cases and paths of compiled steps")
    parser.add_argument("--plot", action="store_true", help="draw pictures, too: needs matplotlib")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="measure nothing, read results")
    chosen = parser.parse_args(arguments)
    if chosen.compiled:
        chosen.case, chosen.path = chosen.case or list(COMPILED_CASES), chosen.path or list(COMPILED_PATHS)
    try:
        found = files.read(chosen.source) if chosen.source else measure(chosen)
        text = report.markdown(found)
        files.write(found, chosen.output / f"{chosen.name}.json")
        (chosen.output / f"{chosen.name}.md").write_text(text)
        print(text)
        if chosen.plot:
            from analysis import figures

            for file in figures.draw(found, chosen.output):
                print(f"picture: {file}")
    except (OSError, ValueError, KeyError, ImportError, subprocess.CalledProcessError) as failure:
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
        return 2
    return 1 if found["wrong"] else 0


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """The document of one run; its times are in the unit that their names end with."""
    start = time.monotonic()
    driver = chosen.build / "benchmarks" / "paths" / "bench_driver"
    models = chosen.build / "benchmarks" / "models"
    if not driver.is_file():
        raise FileNotFoundError(f"there is no {driver}: cmake --build {chosen.build} --target bench_driver")
    cases = chosen.case or list(CASES)
    effort = QUICK if chosen.quick else FULL
    info = machine.describe_machine()
    sizes = {case: (CASES[case].quick,) if chosen.quick else CASES[case].sizes for case in cases}
    environment = {
        **machine.worker_environment(),
        "BENCH_SCRIPT": str(HERE / "script.py"),
        "BENCH_PACKAGE": str((chosen.build / "share" / "ftn_pytorch" / "python").absolute()),
        "TORCHINDUCTOR_CACHE_DIR": str((chosen.build / "benchmarks" / "inductor").resolve()),
    }
    write_models(models, sizes, chosen.quick, environment["BENCH_PACKAGE"])
    setting = Setting(
        driver=driver.resolve(),
        sources=HERE,
        models=models.resolve(),
        core=machine.last_core(),
        manifest=json.loads((models / "manifest.json").read_text()),
        environment=environment,
    )
    for path in chosen.path or PATHS:
        if path in PEERS and (library := setting.library(path)):
            say(f"{PATHS[path]} is {library}")
    whole = Outcome()
    for case in cases:
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
        driven = f"{fortran[0].removeprefix('Fortran ')}, {machine.build_type(chosen.build)}" if fortran else "not used"
        found = {
            "machine": {**info, "load_after": machine.load()},
            "versions": machine.versions(),
            "driver": driven,
            "uses_torchscript": os.environ.get("USETS", "0") not in ("", "0"),
            "effort": dataclasses.asdict(effort),
            "part": part_of(chosen),
            "models": setting.manifest["problems"],
            "files": files_of(setting, sizes),
            "seconds": time.monotonic() - start,
            **dataclasses.asdict(whole),
        }
        # After each case, so that what was measured is there even if the run is ended.
        files.write(found, chosen.output / f"{chosen.name}.json")
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


def write_models(folder: Path, sizes: dict[str, tuple[int, ...]], quick: bool, package: str) -> None:
    """The files that are missing; a quick run does without what takes minutes to compile, unless it is there.

    An exporter that ends its process leaves sizes without a problem: they become lines of the result.
    """
    # code computes with one thread, as it is measured
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "BENCH_PACKAGE": package}
    for case, some in sizes.items():
        command = [sys.executable, str(HERE.parent / "models.py"), str(folder), "--case", case]
        for size in some:
            command += ["--size", str(size)]
        if quick:
            command += ["--formats", "pt,onnx,ftr,ckpt"]
        subprocess.run(command, stdout=sys.stderr, check=False, env=environment)


if __name__ == "__main__":
    sys.exit(main())
