# SPDX-License-Identifier: MIT
"""The picture of the example: what is missed, and the errors of both networks with the borders of the sub-domains."""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib import ticker  # noqa: E402

OVER, LONE = "#0072B2", "#D55E00"


def draw(folder, missed, predicted, losses, steps, px, py, cell_km):
    """missed: (ny, nx), predicted: (2, ny, nx), 1/s2. losses: (n, 2) at ``steps``."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    missed, predicted, losses, steps = map(np.array, (missed, predicted, losses, steps))
    ny, nx = missed.shape
    extent = [0, nx * cell_km, 0, ny * cell_km]
    scale = 1e-11
    limit = 2.5 * missed.std() / scale
    plt.rcParams.update({"font.size": 10, "axes.titlesize": 10, "axes.titlelocation": "left"})
    figure = plt.figure(figsize=(9.6, 5.4), dpi=90, layout="constrained")
    grid = figure.add_gridspec(2, 2)
    errors = predicted - missed
    shares = [f"{100 * error.var() / missed.var():.1f} % of the variance" for error in errors]
    maps = [
        (grid[0, 0], "what the coarse grid misses", missed),
        (grid[0, 1], f"error with halos: {shares[0]}", errors[0]),
        (grid[1, 1], f"error without halos: {shares[1]}", errors[1]),
    ]
    axes = []
    for place, title, values in maps:
        ax = figure.add_subplot(place, title=title, xlabel="x (km)", ylabel="y (km)")
        image = ax.imshow(
            values / scale, origin="lower", extent=extent, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto"
        )
        for rank in range(1, px):
            ax.axvline(extent[1] * (rank * nx // px) / nx, color="black", lw=0.8, ls=":")
        for rank in range(1, py):
            ax.axhline(extent[3] * (rank * ny // py) / ny, color="black", lw=0.8, ls=":")
        axes.append(ax)
    figure.colorbar(image, ax=axes, location="right", shrink=0.6, label="$10^{-11}$ s$^{-2}$")
    ax = figure.add_subplot(grid[1, 0], title="error on eddies not seen before, share of the variance")
    for column, (label, colour) in enumerate((("with halos", OVER), ("without halos", LONE))):
        ax.plot(steps, losses[:, column], "o-", ms=3, color=colour, lw=1.2, label=label)
    ax.set(yscale="log", ylim=(8e-3, 1), xlabel="step of the optimizer")
    ax.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    figure.savefig(folder / "cnn_over_domains.png")
    plt.close(figure)
