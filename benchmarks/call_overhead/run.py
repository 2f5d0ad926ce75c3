# SPDX-License-Identifier: MIT
"""Run call_overhead, or take what was measured; write call_overhead.json and call_overhead.md, draw a picture.

run.py                                    measure: five processes as installed, one for each way that torch may lack
run.py --from out/benchmarks/call_overhead.json --output benchmarks/call_overhead    measure nothing

It needs a build with the target call_overhead, and matplotlib.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from analysis import document as files  # noqa: E402
from analysis import machine, overhead  # noqa: E402

PROCESSES = 5
# How an array's tensor is looked at where the extension is not built for this torch.
FALLBACKS = {"kept, getters": {"FTN_PYTORCH_CPP_FUNCTIONS": "0"}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"), help="build folder (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"), help="default: %(default)s")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="measure nothing, read this JSON file")
    chosen = parser.parse_args(arguments)
    try:
        found = files.read(chosen.source) if chosen.source else measure(chosen.build)
        text = overhead.markdown(found)
        files.write(found, chosen.output / "call_overhead.json")
        (chosen.output / "call_overhead.md").write_text(text)
        print(text)
        for file in overhead.draw(found["rows"], chosen.output / "call_overhead"):
            print(f"picture: {file}")
    except (OSError, ValueError, KeyError, ImportError, subprocess.CalledProcessError) as failure:
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
        return 2
    return 0


def measure(build: Path) -> dict[str, Any]:
    """The document of one run; times in microseconds."""
    program = build / "benchmarks" / "call_overhead" / "call_overhead"
    if not program.is_file():
        raise FileNotFoundError(f"there is no {program}: cmake --build {build} --target call_overhead")
    info = machine.describe_machine()
    print(f"== Measuring, as installed, in {PROCESSES} processes (two minutes)", flush=True)
    rows = overhead.middle([run_once(program, {}) for _ in range(PROCESSES)])
    for way, environment in FALLBACKS.items():
        print(f"== Measuring, {way}: {' '.join(f'{key}={value}' for key, value in environment.items())}", flush=True)
        rows += [{**overhead.summarize(row), "way": way} for row in run_once(program, environment)
                 if row["way"] == "kept" and row["case"] != "empty 0"]
    return {
        "machine": {**info, "load_after": machine.load()},
        "versions": machine.versions(),
        "build": machine.build_type(build),
        "rows": rows,
    }


def run_once(program: Path, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows of one run of the program, pinned to one core; times of each turn in nanoseconds."""
    core = machine.last_core()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        subprocess.run(
            [program, HERE / "functions.py", file],
            check=True,
            env={**os.environ, **machine.worker_environment(), **environment},
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        return json.loads(file.read_text())["rows"]


if __name__ == "__main__":
    sys.exit(main())
