# SPDX-License-Identifier: MIT
"""Results of all paths as pictures: lines where a case has several sizes, else bars. All show the fastest call."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import style
from harness.style import plt
from matplotlib.ticker import NullLocator

from .plan import CASES, FLOOR, PATHS

# Colour, marker, kind of line. Ours are solid, loops in Python dashed, libraries of others dash-dotted. The colours are
# apart for all kinds of colour vision; in grey, marker and kind of line tell what the colour does not.
STYLES = {
    "python": ("#000000", "o", "--"),
    "script": ("#0072B2", "s", "-"),
    "recorded": ("#E7298A", "H", "-"),
    "python-recorded": ("#A01060", "8", "--"),
    "recording": ("#7FC31C", "p", "-"),
    "package": ("#3F6B0A", "1", "-"),
    "python-code": ("#D81B1B", "2", "--"),
    "python-compile": ("#1B9AAA", "3", "--"),
    "compiled": ("#56B4E9", "^", "-"),
    "copy": ("#D55E00", "v", "-"),
    "torchscript": ("#663300", "D", "-"),
    "direct": ("#009E73", "P", "-"),
    "pt2": ("#E69F00", "X", "-"),
    "onnx": ("#6C00D9", "<", "-"),
    "python-onnx": ("#999999", ">", "--"),
    "libtorch": ("#0F2566", "h", "-."),
    "ftorch": ("#B266FF", "*", "-."),
}
# The lines of a picture of many paths: what a reader chooses among. The tables have all.
MANY = 8
SHOWN = ("python", "script", "recorded", "recording", "direct", "onnx", "ftorch")
# Bars of several cases in one picture.
GROUPS = {
    "networks": ("Large networks", ("resnet18", "unet")),
    "training": ("One step of training", ("train_step", "train_polynomial")),
}
# Starts of processes: the title, and the name of the file.
COLD = {
    "mlp": ("Cold start with a small network", "cold_start"),
    "train_step": ("Cold start of a program that trains a small network", "cold_start_training"),
}


def draw(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """All pictures that the results allow, as PNG and SVG files. ImportError without matplotlib."""
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for case in dict.fromkeys(row["case"] for row in document["results"]):
        rows = [row for row in document["results"] if row["case"] == case]
        grouped = any(case in cases for _, cases in GROUPS.values())
        if not grouped and len({row["size"] for row in rows}) > 1:
            files += _lines(case, rows, folder / case)
    for name, (title, cases) in GROUPS.items():
        rows = [row for row in document["results"] if row["case"] in cases]
        if any(row["path"] == FLOOR for row in rows):
            files += _bars(title, rows, folder / name)
    for case, (title, name) in COLD.items():
        cold = [row for row in document["cold"] if row["case"] == case]
        if cold:
            files += _cold(title, cold, folder / name)
    return files


def _lines(case: str, rows: Sequence[Mapping[str, Any]], file: Path) -> list[Path]:
    """Time of a call above, what it is beside plain Python below."""
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(10, 7.5), sharex=True, height_ratios=(3, 2.4), layout="constrained"
    )
    sizes = sorted({row["size"] for row in rows})
    measured = {row["path"] for row in rows}
    shown = [path for path in (SHOWN if len(measured) > MANY else PATHS) if path in measured]
    rows = [row for row in rows if row["path"] in shown]
    times = {(row["path"], row["size"]): row["call_us"]["min"] for row in rows}
    ratios = {(path, size): value / times[FLOOR, size] for (path, size), value in times.items()
              if (FLOOR, size) in times}
    for panel, values in ((above, times), (below, ratios)):
        for path in shown:
            points = [(size, values[path, size]) for size in sizes if (path, size) in values]
            if points:
                color, marker, line = STYLES[path]
                panel.plot(*zip(*points), color=color, marker=marker, linestyle=line, label=PATHS[path], markersize=7,
                           linewidth=1.8)
        if values:
            style.plain_log_axis(panel.yaxis, min(values.values()), max(values.values()))
        panel.grid(True, alpha=0.3)
    if case == "tiny":
        below.set_xticks(sizes)
    else:
        below.set_xscale("log", base=2)
        below.set_xticks(sizes, [f"{size:,}" for size in sizes])
        below.xaxis.set_minor_locator(NullLocator())
    above.set_ylabel("time of a call (microseconds)")
    below.set_ylabel("relative to plain Python")
    below.set_xlabel(CASES[case].unit)
    chosen = "" if len(shown) == len(measured) else f"; {len(shown)} of {len(measured)} paths"
    above.set_title(f"{CASES[case].title}\nfastest call on one core, lower is faster{chosen}", loc="left")
    figure.legend(*above.get_legend_handles_labels(), loc="outside right upper", frameon=False,
                  handlelength=3.5)
    return style.save(figure, file)


def _bars(title: str, rows: Sequence[Mapping[str, Any]], file: Path) -> list[Path]:
    """Time relative to plain Python of each case and size, with the time as text."""
    times = {(row["case"], row["size"], row["path"]): row["call_us"]["min"] for row in rows}
    groups = [(case, size) for case, size, path in times if path == FLOOR]
    paths = [path for path in PATHS if any(path == other for *_, other in times)]
    inches = (3.4 * len(groups) + 2.4, 0.36 * len(paths) + 1.5)
    figure, panels = plt.subplots(1, len(groups), figsize=inches, sharey=True, layout="constrained", squeeze=False)
    for panel, (case, size) in zip(panels[0], groups):
        floor = times[case, size, FLOOR]
        largest = max(time / floor for (*group, _), time in times.items() if tuple(group) == (case, size))
        for place, path in enumerate(paths):
            time = times.get((case, size, path))
            if time is None:
                panel.text(0.02 * largest, place, "not available", va="center", color="#666666", fontsize=10)
                continue
            panel.barh(place, time / floor, color=STYLES[path][0], height=0.7)
            said = f"{time / floor:.2f}  ({_time(time)})"
            panel.text(max(time / floor, 1) + 0.03 * largest, place, said, va="center", fontsize=10)
        panel.axvline(1, color="black", linestyle="--", linewidth=1)
        panel.set_xlim(0, 1.65 * largest)
        panel.set_xlabel("time relative to plain Python")
        panel.set_title(f"{CASES[case].title}\n{CASES[case].unit}: {size}", fontsize=10)
        panel.grid(True, axis="x", alpha=0.3)
        panel.set_yticks(range(len(paths)), [PATHS[path] for path in paths])
    figure.suptitle(f"{title}: fastest call on one core; shorter is faster")
    panels[0][0].invert_yaxis()
    return style.save(figure, file)


def _time(microseconds: float) -> str:
    return f"{microseconds:,.0f} \N{MICRO SIGN}s" if microseconds < 1e4 else f"{microseconds / 1e3:,.0f} ms"


def _cold(title: str, rows: Sequence[Mapping[str, Any]], file: Path) -> list[Path]:
    """Seconds from the start of a process to its first result, by part."""
    figure, panel = plt.subplots(figsize=(10, 0.36 * len(rows) + 1.5), layout="constrained")
    own = {row["path"]: row for row in rows}
    order = [path for path in PATHS if path in own]
    left = [0.0] * len(order)
    parts = (("start_ms", "the process starts", "#BBBBBB"), ("load_ms", "loading, with all imports", "#0072B2"),
             ("first_call_ms", "first call", "#E69F00"))
    for name, label, color in parts:
        values = [own[path][name] / 1e3 for path in order]
        panel.barh(range(len(order)), values, left=left, color=color, label=label, height=0.7)
        left = [one + other for one, other in zip(left, values)]
    # A compiler at work takes many times longer than all others, which are to be told apart.
    limit = 1.3 * max([total for total in left if total < 5 * statistics.median(left)], default=max(left))
    for place, (path, total) in enumerate(zip(order, left)):
        if total < limit:
            panel.text(total + 0.01 * limit, place, f"{total:.1f} s", va="center")
        else:
            first = own[path]["first_call_ms"] / 1e3
            said = f"{total:.1f} s, {first:.1f} s of them in the first call \N{RIGHTWARDS ARROW}"
            panel.text(0.985 * limit, place, said, va="center", ha="right",
                       bbox={"facecolor": "white", "edgecolor": "none", "pad": 2})
    panel.set_yticks(range(len(order)), [PATHS[path] for path in order])
    panel.invert_yaxis()
    panel.set_xlim(0, limit)
    panel.set_xlabel("seconds from the start of the process to the first result")
    panel.set_title(f"{title}\nplain Python imports torch while it starts", loc="left")
    panel.grid(True, axis="x", alpha=0.3)
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return style.save(figure, file)
