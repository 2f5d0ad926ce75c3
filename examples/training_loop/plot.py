# SPDX-License-Identifier: MIT
"""Draw what the program has written: python plot.py [training_loop.csv [training_loop.svg]]."""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch"})

NOISE = 0.05
"""That of main.f90."""


def main(table: str = "training_loop.csv", picture: str = "training_loop.svg") -> None:
    with open(table, newline="") as stream:
        rows = list(csv.DictReader(stream))
    epochs = [int(row["epoch"]) for row in rows]
    figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    for name, label, colour, offset in (
        ("training", "noisy points, trained with", "#d95f02", 8),
        ("validation", "unseen points without noise", "#1b6ca8", -16),
    ):
        losses = [float(row[name]) for row in rows]
        axes.plot(epochs, losses, color=colour)
        axes.annotate(
            label, (epochs[-1], losses[-1]), (-4, offset), textcoords="offset points", ha="right", color=colour
        )
    axes.axhline(NOISE**2, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
    axes.annotate("variance of the noise", (1, NOISE**2), (4, -11), textcoords="offset points", color="0.4")
    axes.set(xlabel="epoch", ylabel="mean squared error", yscale="log", xlim=(1, epochs[-1]), ylim=(5e-4, 0.3))
    axes.set_title("Loss of the training and of the validation", loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=110, metadata={"Date": None} if picture.endswith(".svg") else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
