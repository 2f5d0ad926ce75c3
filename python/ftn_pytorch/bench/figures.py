# SPDX-License-Identifier: MIT
"""The results as pictures: time against size with the ratio to plain Python below, bars where there is one size."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import FtnPytorchError
from .plan import CASES, FLOOR, PATHS

# Okabe and Ito's colours, which people with any colour vision tell apart; markers tell as well.
STYLES = {
    "python": ("#000000", "o"),
    "script": ("#0072B2", "s"),
    "compiled": ("#56B4E9", "^"),
    "copy": ("#D55E00", "v"),
    "torchscript": ("#CC79A7", "D"),
    "direct": ("#009E73", "P"),
    "pt2": ("#E69F00", "X"),
    "onnx": ("#7F3C8D", "<"),
    "python-onnx": ("#999999", ">"),
    "libtorch": ("#F0A3C0", "h"),
    "ftorch": ("#8C6D31", "*"),
}
# Bars of several cases in one picture.
GROUPS = {
    "networks": ("Large networks", ("resnet18", "unet")),
    "training": ("One step of training", ("train_step", "train_polynomial")),
}


def draw(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """All pictures that the results allow, as PNG files. IMPORT without matplotlib."""
    try:
        import matplotlib
    except ImportError as failure:
        raise FtnPytorchError("IMPORT", "pictures need matplotlib: pip install matplotlib") from failure
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"font.size": 12, "axes.titlesize": 13, "legend.fontsize": 11, "axes.axisbelow": True})
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for case in dict.fromkeys(row["case"] for row in document["results"]):
        rows = [row for row in document["results"] if row["case"] == case]
        grouped = any(case in cases for _, cases in GROUPS.values())
        if not grouped and len({row["size"] for row in rows}) > 1:
            files.append(_lines(case, rows, folder / f"{case}.png"))
    for name, (title, cases) in GROUPS.items():
        rows = [row for row in document["results"] if row["case"] in cases and "ratio" in row]
        if rows:
            files.append(_bars(title, rows, folder / f"{name}.png"))
    cold = [row for row in document["cold"] if row["case"] == "mlp"]
    if cold:
        files.append(_cold(cold, folder / "cold_start.png"))
    return files


def _save(figure: Any, file: Path) -> Path:
    import matplotlib.pyplot as plt

    figure.savefig(file, dpi=120)
    plt.close(figure)
    return file


def _lines(case: str, rows: Sequence[Mapping[str, Any]], file: Path) -> Path:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    figure, (above, below) = plt.subplots(
        2, 1, figsize=(10, 7.5), sharex=True, height_ratios=(3, 2), layout="constrained"
    )
    sizes = sorted({row["size"] for row in rows})
    for path in PATHS:
        points = sorted((row["size"], row) for row in rows if row["path"] == path)
        if not points:
            continue
        color, marker = STYLES[path]
        style = {"color": color, "marker": marker, "markersize": 7, "linewidth": 1.8,
                 "linestyle": "--" if path in ("python", "python-onnx") else "-"}
        above.plot([size for size, _ in points], [row["call_us"]["median"] for _, row in points], label=PATHS[path],
                   **style)
        if path != FLOOR and "ratio" in points[0][1]:
            below.plot([size for size, _ in points], [row["ratio"] for _, row in points], **style)
    linear = case == "tiny"
    for axes in (above, below):
        axes.set_xscale("linear" if linear else "log", **({} if linear else {"base": 2}))
        axes.set_yscale("log")
        axes.grid(True, which="both", alpha=0.25)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    if max(row.get("ratio", 1) for row in rows) / min(row.get("ratio", 1) for row in rows) < 50:
        below.yaxis.set_minor_formatter(FuncFormatter(_two_and_five))
    below.axhline(1, color=STYLES[FLOOR][0], linestyle="--", linewidth=1.2)
    below.set_xticks(sizes, [f"{size:,}" for size in sizes])
    below.xaxis.set_minor_locator(NullLocator())
    above.set_ylabel("time of a call, microseconds")
    below.set_ylabel("ratio to plain Python")
    below.set_xlabel(CASES[case].unit)
    above.set_title(f"{CASES[case].title}\nmedian time of a call on one core", loc="left")
    figure.legend(*above.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    return _save(figure, file)


def _two_and_five(value: float, _: int) -> str:
    """Labels between the powers of ten of an axis that spans little."""
    text = f"{value:g}"
    return text if text.lstrip("0.")[:1] in ("2", "5") else ""


def _bars(title: str, rows: Sequence[Mapping[str, Any]], file: Path) -> Path:
    import matplotlib.pyplot as plt

    groups = list(dict.fromkeys((row["case"], row["size"]) for row in rows))
    inches = (3.4 * len(groups) + 2.4, 4.6)
    figure, axes = plt.subplots(1, len(groups), figsize=inches, sharey=True, layout="constrained")
    paths = [path for path in PATHS if any(row["path"] == path for row in rows)]
    for axis, (case, size) in zip([axes] if len(groups) == 1 else axes, groups):
        own = {row["path"]: row for row in rows if (row["case"], row["size"]) == (case, size)}
        largest = max(1, *(row["ratio"] for row in own.values()))
        for place, path in enumerate(paths):
            if path not in own:
                axis.text(0.02, place, " not available", va="center", color="#777777", fontsize=10)
                continue
            ratio, median = own[path]["ratio"], own[path]["call_us"]["median"]
            axis.barh(place, ratio, color=STYLES[path][0], height=0.7)
            said = f"{ratio:.2f}  ({_time(median)})"
            axis.text(max(ratio, 1) + 0.02 * largest, place, said, va="center", fontsize=10)
        axis.axvline(1, color="black", linestyle="--", linewidth=1)
        axis.set_xlim(0, 1.6 * largest)
        axis.set_xlabel("ratio to plain Python")
        axis.set_title(f"{case}, {CASES[case].unit}: {size}" if len(CASES[case].unit) < 9 else f"{case}, {size}")
        axis.grid(True, axis="x", alpha=0.25)
        axis.set_yticks(range(len(paths)), [PATHS[path] for path in paths])
    figure.suptitle(f"{title} (median time of a call on one core)")
    figure.axes[0].invert_yaxis()
    return _save(figure, file)


def _time(microseconds: float) -> str:
    return f"{microseconds:.0f} us" if microseconds < 1e4 else f"{microseconds / 1e3:.0f} ms"


def _cold(rows: Sequence[Mapping[str, Any]], file: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 4.6), layout="constrained")
    order = [path for path in PATHS if any(row["path"] == path for row in rows)]
    left = [0.0] * len(order)
    parts = (("start_ms", "process starts", "#999999"), ("load_ms", "load, with all imports", "#0072B2"),
             ("first_call_ms", "first call", "#E69F00"))
    for name, label, color in parts:
        values = [next(row[name] for row in rows if row["path"] == path) / 1e3 for path in order]
        axes.barh(range(len(order)), values, left=left, color=color, label=label, height=0.7)
        left = [one + other for one, other in zip(left, values)]
    # A compiler at work takes many times longer than all others, which are to be told apart.
    limit = 1.4 * max([total for total in left if total < 5 * statistics.median(left)], default=max(left))
    for place, (path, total) in enumerate(zip(order, left)):
        if total < limit:
            axes.text(total + 0.01 * limit, place, f"{total:.1f} s", va="center")
        else:
            row = next(row for row in rows if row["path"] == path)
            said = f"{total:.1f} s, of which {row['first_call_ms'] / 1e3:.1f} s are the first call >>"
            axes.text(0.98 * limit, place, said, va="center", ha="right", color="white", fontweight="bold")
    axes.set_yticks(range(len(order)), [PATHS[path] for path in order])
    axes.invert_yaxis()
    axes.set_xlim(0, limit)
    axes.set_xlabel("seconds until the first result of a small network")
    axes.set_title("Cold start: once per process (plain Python imports torch while it starts)")
    axes.grid(True, axis="x", alpha=0.25)
    axes.legend(loc="best", frameon=True)
    return _save(figure, file)
