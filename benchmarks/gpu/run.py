# SPDX-License-Identifier: MIT
"""Calls with arrays of the host, page-locked ones and arrays on the GPU, beside plain Python with tensors on the GPU.

python benchmarks/gpu/run.py [--build build/release] [--output out/benchmarks] [--rounds 40] [--case NAME]... [--plot]
python benchmarks/gpu/run.py --from out/benchmarks/gpu.json --output benchmarks/gpu --plot    measure nothing

For each case a Fortran program and a Python program live at the same time, on one core, and take turns. The table and
gpu.json have the medians of all rounds, in microseconds for a call.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from analysis import machine  # noqa: E402
from analysis.turns import ask, start  # noqa: E402

CASES = [("mlp", 32), ("mlp", 4096), ("mlp", 262144), ("unet", 1), ("train_step", 32), ("train_step", 4096)]
WAYS = {
    "host": "host arrays",
    "pinned": "pinned host arrays",
    "device": "arrays on the GPU",
    "recorded host": "recorded, host arrays",
    "recorded pinned": "recorded, pinned",
    "recorded device": "recorded, on the GPU",
    "saved host": "from a file, host arrays",
    "saved pinned": "from a file, pinned",
    "saved device": "from a file, on the GPU",
    "python": "Python, tensors on the GPU",
    "graph": "CUDA graph by hand",
}
TITLES = {"mlp": "MLP, batch", "unet": "U-Net, batch", "train_step": "step of Adam, batch"}
MARKERS = {"host": "o", "pinned": "s", "device": "D", "python": "^", "graph": "v"}
COLOURS = {"host": "#D55E00", "pinned": "#E69F00", "device": "#0072B2", "python": "#999999", "graph": "#000000"}
TOLERANCE = 1e-4
ROUND_SECONDS = 0.03


def main() -> int:
    """Measure, write gpu.json and gpu.md, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--case", action="append", choices=TITLES, help="one of them only")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="measure nothing, read gpu.json")
    parser.add_argument("--plot", action="store_true", help="draw gpu.png and gpu.svg, too: needs matplotlib")
    chosen = parser.parse_args()
    if chosen.source:
        return show(json.loads(chosen.source.read_text()), chosen)
    program = chosen.build / "benchmarks" / "gpu" / "bench_gpu"
    if not program.is_file():
        return refuse(f"there is no {program}: cmake --build {chosen.build} --target bench_gpu")
    import torch

    if not torch.cuda.is_available():
        return refuse("torch has no GPU here: nothing is measured")
    os.sched_setaffinity(0, {machine.last_core()})
    document = {
        "machine": machine.describe_machine(),
        "versions": machine.versions(),
        "gpu": torch.cuda.get_device_name(0),
        "unit": "us for a call",
        "rounds": chosen.rounds,
        "results": [
            measure(program, name, size, chosen.rounds) for name, size in CASES if name in (chosen.case or TITLES)
        ],
    }
    document["machine"]["load_after"] = machine.load()
    chosen.output.mkdir(parents=True, exist_ok=True)
    (chosen.output / "gpu.json").write_text(json.dumps(document, indent=1) + "\n")
    return show(document, chosen)


def show(document: dict, chosen: argparse.Namespace) -> int:
    """Table, and a picture if that is wanted."""
    text = table(document)
    chosen.output.mkdir(parents=True, exist_ok=True)
    (chosen.output / "gpu.md").write_text(text)
    print(text, end="")
    if chosen.plot:
        picture(document, chosen.output / "gpu")
    return 0


def refuse(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


def measure(program: Path, name: str, size: int, rounds: int) -> dict:
    """All ways of one case: medians and quartiles."""
    environment = machine.worker_environment()
    command = [str(program), str(HERE / "functions.py"), name, str(size)]
    forms = {form: start([*command, *form.split()], environment) for form in ("", "recorded", "saved")}
    python = start([sys.executable, str(HERE / "functions.py"), name, str(size)], environment)
    if name != "train_step":
        for process in forms.values():
            difference = max(ask(process, "check 1") for _ in range(8))
            if not difference <= TOLERANCE:
                raise RuntimeError(f"{name} {size}: the ways differ by {difference}")

    def seconds(way: str, calls: int) -> float:
        process = python if way in ("python", "graph") else forms[way.rpartition(" ")[0]]
        return ask(process, f"{way.split()[-1]} {calls}")

    calls = {}
    for way in WAYS:
        seconds(way, 20)
        calls[way] = max(1, round(ROUND_SECONDS / (seconds(way, 20) / 20)))
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            times[way].append(seconds(way, calls[way]) / calls[way] * 1e6)
    for process in (*forms.values(), python):
        process.stdin.close()
        if process.wait() != 0:
            raise RuntimeError(f"{name} {size}: a program ended with exit code {process.returncode}")
    return {
        "case": name,
        "size": size,
        "ways": {
            way: {
                "median": round(statistics.median(each), 2),
                "quartiles": [round(value, 2) for value in statistics.quantiles(each)[::2]],
                "calls": calls[way],
            }
            for way, each in times.items()
        },
    }


def table(document: dict) -> str:
    """Markdown."""
    lines = [
        f"{document['gpu']}, {document['machine']['processor']}, torch {document['versions']['torch']}: "
        f"{document['unit']}, median of {document['rounds']} rounds\n",
        f"| case | size | {' | '.join(WAYS.values())} |",
        "|---|---" + "|---" * len(WAYS) + "|",
    ]
    for result in document["results"]:
        medians = " | ".join(f"{result['ways'][way]['median']:.1f}" for way in WAYS)
        lines.append(f"| {result['case']} | {result['size']} | {medians} |")
    return "\n".join(lines) + "\n"


def picture(document: dict, file: Path) -> None:
    """Points for each case, FILE.png and FILE.svg: filled where a step is recorded, half where it comes from a file."""
    from analysis import style

    results = document["results"]
    figure, panel = style.plt.subplots(figsize=(11, 8), layout="constrained")
    for place, (way, title) in enumerate(WAYS.items()):
        colour = COLOURS[way.split()[-1]]
        medians = [result["ways"][way]["median"] for result in results]
        face = colour if " " in way else "white"
        marker = MARKERS[way.split()[-1]]
        rows = [row + 0.85 * ((place + 0.5) / len(WAYS) - 0.5) for row in range(len(results))]
        fill = "left" if way.startswith("saved") else "full"
        panel.plot(medians, rows, marker, ms=8, mec=colour, mfc=face, fillstyle=fill, mew=2, label=title)
    for row in range(1, len(results)):
        panel.axhline(row - 0.5, color="black", lw=0.5)
    panel.set_yticks(range(len(results)), [f"{TITLES[result['case']]} {result['size']:,}" for result in results])
    panel.set_xlabel("time of a call (microseconds), median; left is faster")
    panel.set_title(f"Calls of networks on a GPU ({document['gpu']})", loc="left")
    panel.grid(axis="x", alpha=0.3)
    panel.set_ylim(len(results) - 0.5, -0.5)
    every = [value["median"] for result in results for value in result["ways"].values()]
    style.plain_log_axis(panel.xaxis, min(every), max(every))
    figure.legend(loc="outside right upper", frameon=False)
    style.save(figure, file)


if __name__ == "__main__":
    sys.exit(main())
