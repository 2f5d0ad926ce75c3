# SPDX-License-Identifier: MIT
"""Draw what the program has written: python plot.py [training_through_solver.csv [training_through_solver.svg]]."""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch"})

CURVES = {
    "none": ("no closure", "0.6"),
    "a priori": ("closure trained on single steps", "#d95f02"),
    "a posteriori": ("closure trained through 20 steps of the solver", "#1b6ca8"),
}


def main(table: str = "training_through_solver.csv", picture: str = "training_through_solver.svg") -> None:
    with open(table, newline="") as stream:
        rows = list(csv.DictReader(stream))
    times = [float(row["time"]) for row in rows]
    figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    for name, (label, colour) in CURVES.items():
        errors = [float(row[name]) for row in rows]
        axes.plot(times, errors, color=colour)
        axes.annotate(label, (times[-1], errors[-1]), (-4, 6), textcoords="offset points", ha="right", color=colour)
    axes.axvspan(0, 20 * times[0], color="0.93", zorder=0)
    axes.annotate(
        "20 steps", (20 * times[0], 0), (4, 4), xycoords=("data", "axes fraction"), textcoords="offset points"
    )
    axes.set(xlabel="time (model units)", ylabel="error of u (model units)", yscale="log", xlim=(0, times[-1]))
    axes.set_title(
        "Error of runs from unseen fields, up to each time (root mean square)", loc="left", fontsize="medium"
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=110, metadata={"Date": None} if picture.endswith(".svg") else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
