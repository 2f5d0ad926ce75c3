# SPDX-License-Identifier: MIT
"""Run call_overhead on one core, five times as it is and once for each way it falls back to; make a table and a picture.

usage: run.py <build folder> <output folder>
"""
from __future__ import annotations

import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

PROCESSES = 5
HERE = Path(__file__).resolve().parent
TARGETS_US = {
    ("empty 3", "kept"): 0.10,
    ("empty 3", "kept, view"): 0.30,
}


def measure(program: Path, file: Path, environment: dict[str, str]) -> dict:
    """One run of the program, pinned to the last core it may use, torch on one thread."""
    core = max(os.sched_getaffinity(0))
    subprocess.run(
        [program, HERE / "functions.py", file],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "FTN_PYTORCH_PYTHON": sys.executable, **environment},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    return json.loads(file.read_text())


def summarize(row: dict) -> dict:
    """The first decile over the turns of both sides in microseconds: something else slows the core down in many turns,
    and as all rows take turns, it does so for all alike."""
    python, fortran = (statistics.quantiles(row[side], n=10)[0] / 1000 for side in ("python_ns", "fortran_ns"))
    return {
        "case": row["case"],
        "way": row["way"],
        "python_us": python,
        "fortran_us": fortran,
        "difference_us": fortran - python,
        "ratio": fortran / python,
    }


def middle(runs: list[dict]) -> list[dict]:
    """Each row from the process in which its ratio was the middle one: where things lie in memory differs from process to
    process, and is worth two percent of a network."""
    processes = [[summarize(row) for row in run["rows"]] for run in runs]
    return [sorted(rows, key=lambda row: row["ratio"])[len(rows) // 2] for rows in zip(*processes)]


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    return {"processor": model, "cores": str(os.cpu_count()), "python": platform.python_version()}


def table(rows: list[dict]) -> str:
    """Markdown."""
    lines = ["| case | arrays | Python, us | Fortran, us | difference, us | ratio |", "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(
            f"| {row['case']} | {row['way']} | {row['python_us']:.3f} | {row['fortran_us']:.3f} "
            f"| {row['difference_us']:+.3f} | {row['ratio']:.3f} |"
        )
    return "\n".join(lines)


def picture(rows: list[dict], file: Path) -> None:
    """Difference to Python against the number of arrays, one line for each way of passing them."""
    figure, axes = plt.subplots(figsize=(8.5, 4.5), constrained_layout=True)
    ways = dict.fromkeys(row["way"] for row in rows if row["case"].startswith("empty"))
    for way, marker in zip(ways, itertools.cycle("osD^vPX*<")):
        points = [(int(row["case"].split()[1]), row["difference_us"]) for row in rows
                  if row["case"].startswith("empty") and row["way"] == way]
        axes.plot(*zip(*points), marker=marker, label=way)
    axes.set_yscale("log")
    axes.set_xticks([0, 1, 3, 8])
    axes.set_xlabel("arrays passed (64 x 32, double precision)")
    axes.set_ylabel("time of a call beyond Python's own, microseconds")
    axes.set_title("Calling an empty Python function from Fortran")
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(title="arrays are", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(file, dpi=150)


def main(build: Path, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    program = build / "benchmarks" / "call_overhead" / "call_overhead"
    print(f"== Measuring, as installed, in {PROCESSES} processes (two minutes)", flush=True)
    runs = [measure(program, output / f"process{number}.json", {}) for number in range(1, PROCESSES + 1)]
    fallbacks = {"kept, shim": {"FTN_PYTORCH_IMAGES": "0"}}
    fallbacks["kept, view"] = {**fallbacks["kept, shim"], "FTN_PYTORCH_SHIM": "0"}
    fallbacks["kept, getters"] = {**fallbacks["kept, view"], "FTN_PYTORCH_CPP_FUNCTIONS": "0"}
    rows = middle(runs)
    for way, environment in fallbacks.items():
        print(f"== Measuring, {way}: {' '.join(f'{key}={value}' for key, value in environment.items())}", flush=True)
        for row in measure(program, output / "fallback.json", environment)["rows"]:
            if row["way"] == "kept" and row["case"] != "empty 0":
                rows.append({**summarize(row), "way": way})
    for row in rows:
        row["target_us"] = TARGETS_US.get((row["case"], row["way"]))
    text = table(rows)
    result = {"machine": machine(), "torch": runs[0]["torch"], "rows": rows}
    (output / "call_overhead.json").write_text(json.dumps(result, indent=1))
    (output / "call_overhead.md").write_text(text + "\n")
    picture(rows, output / "call_overhead.png")
    print(text)
    print(f"written to {output}: call_overhead.json, call_overhead.md, call_overhead.png")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
