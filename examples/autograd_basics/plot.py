# SPDX-License-Identifier: MIT
"""Draw what the program has written: python plot.py [autograd_basics.csv [autograd_basics.svg]]."""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch"})

PANELS = {
    "y": ("curve", "response", "What it has learnt: y = x exp(-x²)"),
    "dy/dx": ("slope", "derivative", "What backward gives: dy/dx"),
}


def main(table: str = "autograd_basics.csv", picture: str = "autograd_basics.svg") -> None:
    with open(table, newline="") as stream:
        rows = list(csv.DictReader(stream))
    x = [float(row["x"]) for row in rows]
    figure, panels = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axes, (label, (exact, found, title)) in zip(panels, PANELS.items()):
        axes.plot(x, [float(row[exact]) for row in rows], color="0.8", linewidth=5, label="analytic")
        axes.plot(x, [float(row[found]) for row in rows], color="#1b6ca8", linewidth=1.5, label="network")
        axes.set(xlabel="x", ylabel=label, xlim=(x[0], x[-1]))
        axes.set_title(title, loc="left", fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    figure.savefig(picture, dpi=110, metadata={"Date": None} if picture.endswith(".svg") else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
