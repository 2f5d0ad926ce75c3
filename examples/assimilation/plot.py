# SPDX-License-Identifier: MIT
"""Draw assimilation.csv, which the program has written: assimilation.svg."""

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch"})
rows = np.genfromtxt("assimilation.csv", delimiter=",", names=True)
points = rows["point"]
figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
axes.plot(points, rows["truth"], color="black", linewidth=2.5, label="truth")
axes.plot(points, rows["guess"], color="0.6", linestyle="--", label="first guess")
axes.plot(points, rows["uncorrected"], color="#d95f02", label="4D-Var, advection alone")
axes.plot(points, rows["analysis"], color="#1b6ca8", linewidth=1.8, label="4D-Var, with the learnt correction")
observed = rows[~np.isnan(rows["observation"])]
axes.plot(observed["point"], observed["observation"], "o", color="black", markerfacecolor="white",
          label="observations at the beginning")  # fmt: skip
axes.set(xlabel="grid point", ylabel="concentration (model units)", xlim=(1, len(points)))
axes.set_title("The field at the beginning of the window", loc="left", fontsize="medium")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, fontsize="small", ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
figure.savefig("assimilation.svg", metadata={"Date": None})
