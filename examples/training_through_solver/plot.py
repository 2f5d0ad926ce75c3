# SPDX-License-Identifier: MIT
"""Draw training_through_solver.csv, which the program has written: training_through_solver.svg."""

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch"})
CURVES = {
    "none": ("no closure", "0.6"),
    "a_priori": ("closure trained on single steps", "#d95f02"),
    "a_posteriori": ("closure trained through 20 steps of the solver", "#1b6ca8"),
}
rows = np.genfromtxt("training_through_solver.csv", delimiter=",", names=True)
times = rows["time"]
figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
for name, (label, colour) in CURVES.items():
    axes.plot(times, rows[name], color=colour)
    axes.annotate(label, (times[-1], rows[name][-1]), (-4, 6), textcoords="offset points", ha="right", color=colour)
axes.axvspan(0, 20 * times[0], color="0.93", zorder=0)
axes.annotate("20 steps", (20 * times[0], 0), (4, 4), xycoords=("data", "axes fraction"), textcoords="offset points")
axes.set(xlabel="time (model units)", ylabel="error of u (model units)", yscale="log", xlim=(0, times[-1]))
axes.set_title("Error of runs from unseen fields, up to each time (root mean square)", loc="left", fontsize="medium")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("training_through_solver.svg", metadata={"Date": None})
