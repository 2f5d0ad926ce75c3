# SPDX-License-Identifier: MIT
"""Draw what ``async_training --output FOLDER`` has written: who works when, and the loss against time."""

import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

WAYS = {"synchronous": "synchronous", "thread": "in a thread", "process": "in a process"}
COLOURS = {"model": "#0072B2", "call": "#E69F00", "training": "#009E73"}
LINES = ("#000000", "#D55E00", "#CC79A7")  # of the ways; none of them is a colour of the timeline
LABELS = {"model": "model computes", "call": "call of train", "training": "training"}
SHOWN = 0.020  # seconds of the timeline


def rows(file):
    with file.open() as stream:
        return list(csv.DictReader(stream))


def spans(folder, way):
    """(what, begin, end) of the program, and of what trains beside it."""
    program = rows(folder / f"{way}_model.csv")
    # This file has no head: it is written line by line, by another process perhaps.
    training = [line.split(",") for line in (folder / f"{way}_training.csv").read_text().splitlines()]
    found = [(row["what"], float(row["begin"]), float(row["end"])) for row in program]
    return found + [(what, float(begin), float(end)) for what, begin, end in training]


def draw_timeline(axes, folder):
    for row, way in enumerate(WAYS):
        found = spans(folder, way)
        models = sorted(begin for what, begin, _ in found if what == "model")
        first = models[len(models) * 3 // 4]
        for what, begin, end in found:
            begin, end = max(begin, first), min(end, first + SHOWN)
            if begin < end:
                lane = 3 * row + (1.05 if what == "training" else 0)
                span = (1e3 * (begin - first), 1e3 * (end - begin))
                axes.broken_barh([span], (lane, 0.95), color=COLOURS[what], lw=0)
        axes.text(-0.2, 3 * row + 1, WAYS[way], ha="right", va="center")
    axes.set(xlim=(0, 1e3 * SHOWN), ylim=(3 * len(WAYS) - 0.7, -0.3), yticks=[], xlabel="time (ms)")
    axes.set_title("A: who works when", loc="left", pad=24)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    axes.legend(handles, LABELS.values(), loc="lower center", bbox_to_anchor=(0.5, 0.98), ncols=3, frameon=False)
    axes.spines[["left", "top", "right"]].set_visible(False)


def draw_loss(axes, folder):
    for colour, way in zip(LINES, WAYS):
        begin = None
        times, losses = [], []
        models = [float(row["begin"]) for row in rows(folder / f"{way}_model.csv") if row["what"] == "model"]
        for time, row in zip(models, rows(folder / f"{way}_loss.csv")):
            begin = time if begin is None else begin
            if "Inf" not in row["loss"]:
                times.append(time - begin)
                losses.append(float(row["loss"]))
        axes.semilogy(times, losses, color=colour, lw=0.9, label=f"{WAYS[way]}")
        axes.plot(times[-1], losses[-1], "o", color=colour)
    axes.set(xlabel="time since the start of the model (s)", ylabel="loss, normalised")
    axes.set_title("B: loss; each line ends with the model", loc="left")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def main(folder):
    plt.rcParams.update({"font.size": 11, "svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), width_ratios=(3, 2), layout="constrained")
    draw_timeline(left, folder)
    draw_loss(right, folder)
    figure.savefig(folder / "async_training.png", dpi=110)
    figure.savefig(folder / "async_training.svg", metadata={"Date": None})


main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
