# SPDX-License-Identifier: MIT
"""Draw what the program has written: python plot.py [assimilation.csv [assimilation.svg]]."""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch"})


def main(table: str = "assimilation.csv", picture: str = "assimilation.svg") -> None:
    with open(table, newline="") as stream:
        rows = list(csv.DictReader(stream))
    points = [int(row["point"]) for row in rows]

    def column(name: str) -> list[float]:
        return [float(row[name]) for row in rows]

    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(points, column("truth"), color="black", linewidth=2.5, label="truth")
    axes.plot(points, column("guess"), color="0.6", linestyle="--", label="first guess")
    axes.plot(points, column("uncorrected"), color="#d95f02", label="4D-Var, advection alone")
    axes.plot(points, column("analysis"), color="#1b6ca8", linewidth=1.8, label="4D-Var, with the learnt correction")
    observed = [(point, float(row["observation"])) for point, row in zip(points, rows) if row["observation"].strip()]
    axes.plot(*zip(*observed), "o", color="black", markerfacecolor="white", label="observations at the beginning")
    axes.set(xlabel="grid point", ylabel="concentration (model units)", xlim=(1, len(points)))
    axes.set_title("The field at the beginning of the window", loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    figure.savefig(picture, dpi=110, metadata={"Date": None} if picture.endswith(".svg") else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
