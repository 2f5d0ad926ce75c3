# SPDX-License-Identifier: MIT
"""Draws what the network has learnt, and profiles of runs without it and with it.

python plot.py run/log.csv without/profiles.001.nc with/profiles.001.nc [folder for the pictures]
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import h5py
import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

BLUE, ORANGE = "#1b6ca8", "#d95f02"
HOUR = 3600.0  # what profiles are averaged over, from the end
PANELS = {
    "thl": ("potential temperature (K)", 1.0),
    "ql": ("liquid water (mg/kg)", 1e6),
    "w2r": ("resolved variance of w (m²/s²)", 1.0),
    "w2s": ("subgrid energy (m²/s²)", 1.0),
}
pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch", "axes.titlesize": "medium"})


def save(figure: pyplot.Figure, path: Path) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def draw_learning(log: str, path: Path) -> None:
    with open(log, newline="") as file:
        rows = [(int(row["step"]), float(row["skill"])) for row in csv.DictReader(file) if row["skill"]]
    steps, skills = zip(*rows, strict=True)
    figure, axes = pyplot.subplots(figsize=(5.5, 2.8), layout="constrained")
    axes.plot(steps, [1 - skill for skill in skills], color=BLUE)
    axes.set(xlabel="time step of the model", ylabel="1 − skill", yscale="log", xlim=(0, None))
    axes.set_title("Skill for cells that the network has not learnt from", loc="left")
    save(figure, path)


def profile(file: h5py.File, name: str) -> tuple:
    """Heights, and a mean over the last hour."""
    variable, time = file[name], file["time"][:]
    (height,) = variable.dims[1].values()
    return height[:], variable[time > time[-1] - HOUR].mean(0)


def draw_profiles(without: str, with_network: str, path: Path) -> None:
    figure, panels = pyplot.subplots(1, len(PANELS), figsize=(9, 3.4), sharey=True, layout="constrained")
    for label, name, colour, style in (
        ("closure of DALES", without, BLUE, "-"),
        ("network", with_network, ORANGE, "--"),
    ):
        with h5py.File(name) as file:
            for axes, (variable, (title, factor)) in zip(panels, PANELS.items(), strict=True):
                heights, values = profile(file, variable)
                axes.plot(factor * values, heights / 1000, style, color=colour, label=label)
                axes.set_xlabel(title)
    panels[0].set(ylabel="height (km)", ylim=(0, None))
    panels[1].legend(frameon=False)
    save(figure, path)


if __name__ == "__main__":
    pictures = Path(sys.argv[4] if len(sys.argv) > 4 else ".")
    draw_learning(sys.argv[1], pictures / "dales_learning.svg")
    draw_profiles(sys.argv[2], sys.argv[3], pictures / "dales_profiles.svg")
