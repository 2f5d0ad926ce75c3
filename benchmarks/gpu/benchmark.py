# SPDX-License-Identifier: MIT
"""Calls with arrays of the host, page-locked ones and arrays on the GPU, beside plain Python with tensors on the GPU.

The table has the medians. It needs a GPU, and a build with the target bench_gpu.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness import machine
from harness.tables import page, table
from harness.turns import Effort, pivoted, rows
from harness.worker import numbers, workers

HERE = Path(__file__).resolve().parent
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
FORMS = {"": "written", "recorded": "recorded", "saved": "saved"}
TOLERANCE = 1e-4
EFFORT = Effort(seconds=1.2, rounds=40)


def options(parser):
    parser.add_argument("--case", action="append", choices=list(TITLES), help="one of them only; may be repeated")


def measure(chosen, keep):
    import torch

    program = machine.program_of(chosen.build, "gpu", "bench_gpu")
    if not torch.cuda.is_available():
        raise RuntimeError("torch has no GPU here: nothing is measured")
    effort = EFFORT.of(chosen.rounds)
    with machine.described() as found:
        found |= {"gpu": torch.cuda.get_device_name(0), "rounds": effort.rounds, "results": []}
        for case, size in CASES:
            if case in (chosen.case or TITLES):
                found["results"] += measure_case(program, case, size, effort)
                keep(found)
    return found


def measure_case(program, case, size, effort):
    """All ways: three programs and a loop in Python, which live at the same time."""
    functions = HERE / "functions.py"
    commands = {form: [program, functions, case, size, word] for form, word in FORMS.items()}
    commands["python"] = [sys.executable, functions, case, size]
    with workers(commands, machine.worker_environment(), machine.last_core()) as started:
        for form in FORMS if case != "train_step" else ():
            difference = max(numbers(started[form].ask("check", "checked"))[0] for _ in range(8))
            if not difference <= TOLERANCE:
                raise RuntimeError(f"{case} {size}: the ways differ by {difference}")
        ways = {}
        for way in WAYS:
            process = "python" if way in ("python", "graph") else way.rpartition(" ")[0]
            ways[way] = (started[process], way.split()[-1])
        return rows({"case": case, "size": size}, ways, effort)


def markdown(found):
    cases = pivoted(found["results"], ("case", "size"))
    ways = [way for way in WAYS if any(way in times for times in cases.values())]
    lines = [(*case, *(f"{times[way]['median']:.1f}" for way in ways)) for case, times in cases.items()]
    return page(
        f"Arrays on a GPU: {found['gpu']}",
        found,
        f"Microseconds of a call, median of {found['rounds']} rounds. See [the README](../README.md#arrays-on-a-gpu).",
        table(("case", "size", *(WAYS[way] for way in ways)), lines),
    )


def draw(found, folder):
    """Points for each case: filled where a step is recorded, half where it comes from a file."""
    from harness import style

    results = pivoted(found["results"], ("case", "size"))
    figure, panel = style.plt.subplots(figsize=(11, 8), layout="constrained")
    for place, (way, title) in enumerate(WAYS.items()):
        colour = COLOURS[way.split()[-1]]
        points = [(times[way]["median"], row) for row, times in enumerate(results.values()) if way in times]
        face = colour if " " in way else "white"
        marker = MARKERS[way.split()[-1]]
        shift = 0.85 * ((place + 0.5) / len(WAYS) - 0.5)
        fill = "left" if way.startswith("saved") else "full"
        panel.plot([x for x, _ in points], [row + shift for _, row in points], marker, ms=8, mec=colour, mfc=face,
                   fillstyle=fill, mew=2, label=title)
    for row in range(1, len(results)):
        panel.axhline(row - 0.5, color="black", lw=0.5)
    panel.set_yticks(range(len(results)), [f"{TITLES[case]} {size:,}" for case, size in results])
    panel.set_xlabel("time of a call (microseconds), median; left is faster")
    panel.set_title(f"Calls of networks on a GPU ({found['gpu']})", loc="left")
    panel.grid(axis="x", alpha=0.3)
    panel.set_ylim(len(results) - 0.5, -0.5)
    every = [value["median"] for times in results.values() for value in times.values()]
    style.plain_log_axis(panel.xaxis, min(every), max(every))
    figure.legend(loc="outside right upper", frameon=False)
    return style.save(figure, folder / "gpu")
