# SPDX-License-Identifier: MIT
"""Draw autograd_basics.csv, which the program has written: autograd_basics.svg."""

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch"})
PANELS = {
    "y": ("curve", "response", "What it has learnt: y = x exp(-x²)"),
    "dy/dx": ("slope", "derivative", "What backward gives: dy/dx"),
}
rows = np.genfromtxt("autograd_basics.csv", delimiter=",", names=True)
figure, panels = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for axes, (label, (exact, found, title)) in zip(panels, PANELS.items()):
    axes.plot(rows["x"], rows[exact], color="0.8", linewidth=5, label="analytic")
    axes.plot(rows["x"], rows[found], color="#1b6ca8", linewidth=1.5, label="network")
    axes.set(xlabel="x", ylabel=label, xlim=(rows["x"][0], rows["x"][-1]))
    axes.set_title(title, loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
panels[0].legend(frameon=False)
figure.savefig("autograd_basics.svg", metadata={"Date": None})
