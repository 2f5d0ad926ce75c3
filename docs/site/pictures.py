# SPDX-License-Identifier: MIT
"""Pictures of the gallery for examples that draw none themselves: pictures.py FOLDER

FOLDER has mpi_training/ and trained_without_python/: the folders that were given to the programs of these examples, run
as their READMEs say.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy
from matplotlib import pyplot

IMAGES = Path(__file__).resolve().parents[1] / "images"
BLUE, ORANGE = "#1b6ca8", "#d95f02"
pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch", "axes.titlesize": "medium"})


def figure(title: str) -> tuple[pyplot.Figure, pyplot.Axes]:
    drawing, axes = pyplot.subplots(figsize=(4.4, 2.8), layout="constrained")
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return drawing, axes


def save(drawing: pyplot.Figure, name: str) -> None:
    metadata = {"Date": None} if name.endswith(".svg") else None
    drawing.savefig(IMAGES / name, dpi=90, metadata=metadata)


def mpi_training(folder: Path) -> None:
    field = numpy.fromfile(sorted(folder.glob("field-*.bin"))[-1])
    cells = int(field.size**0.5)
    drawing, axes = pyplot.subplots(figsize=(3.2, 2.8), layout="constrained")
    axes.set_title("The tracer on four ranks", loc="left")
    axes.imshow(field.reshape(cells, cells), origin="lower", cmap="cividis")
    for line in (axes.axhline, axes.axvline):
        line(cells / 2 - 0.5, color="white", linewidth=0.8)
    axes.set(xticks=[], yticks=[])
    save(drawing, "mpi_training.png")


def trained_without_python(folder: Path) -> None:
    losses = numpy.fromfile(folder / "losses", dtype="float32")[1:]  # behind their number
    drawing, axes = figure("One training in three processes")
    steps = numpy.arange(1, losses.size + 1)
    for label, begin, end, colour in (
        ("script", 0, 50, ORANGE),
        ("no Python", 50, 150, BLUE),
        ("script", 150, 250, ORANGE),
    ):
        axes.semilogy(steps[begin:end], losses[begin:end], color=colour)
        axes.text((begin + end) / 2, 0.9, label, color=colour, ha="center", transform=axes.get_xaxis_transform())
    axes.set(xlabel="step", ylabel="loss", xlim=(0, 250))
    save(drawing, "trained_without_python.svg")


if __name__ == "__main__":
    work = Path(sys.argv[1])
    mpi_training(work / "mpi_training")
    trained_without_python(work / "trained_without_python")
