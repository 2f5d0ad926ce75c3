# SPDX-License-Identifier: MIT
"""The picture of the example: what is missed, and the errors of both networks with the borders of the sub-domains.

``python plot.py FOLDER`` draws it again from the data of a finished run.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

DATA, PICTURE = "cnn_over_domains.npz", "cnn_over_domains.png"
OVER, LONE = "#0072B2", "#D55E00"


def draw(folder, missed, predicted, losses, steps, px, py, cell_km):
    """missed: (ny, nx), predicted: (2, ny, nx), 1/s2. losses: (n, 2) at ``steps``."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"missed": missed, "predicted": predicted, "losses": losses, "steps": steps}
    np.savez(folder / DATA, px=px, py=py, cell_km=cell_km, **{name: np.array(each) for name, each in arrays.items()})
    picture(folder)


def picture(folder):
    data = np.load(folder / DATA)
    missed, predicted, (px, py) = data["missed"], data["predicted"], (int(data["px"]), int(data["py"]))
    ny, nx = missed.shape
    extent = [0, nx * float(data["cell_km"]), 0, ny * float(data["cell_km"])]
    scale = 1e-11
    limit = 2.5 * missed.std() / scale
    plt.rcParams.update({"font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "left"})
    figure = plt.figure(figsize=(9.6, 7.2), dpi=100, layout="constrained")
    grid = figure.add_gridspec(2, 2)
    maps = [
        (grid[0, 0], "what the coarse grid misses", missed / scale),
        (grid[0, 1], "CNN with halos: error", (predicted[0] - missed) / scale),
        (grid[1, 1], "CNN without halos: error", (predicted[1] - missed) / scale),
    ]
    axes = []
    for place, title, values in maps:
        ax = figure.add_subplot(place)
        image = ax.imshow(
            values, origin="lower", extent=extent, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest"
        )
        for rank in range(1, px):
            ax.axvline(extent[1] * (rank * nx // px) / nx, color="black", lw=0.8, ls=":")
        for rank in range(1, py):
            ax.axhline(extent[3] * (rank * ny // py) / ny, color="black", lw=0.8, ls=":")
        ax.set_title(title)
        ax.set_xlabel("x (km)")
        ax.set_ylabel("y (km)")
        axes.append(ax)
    figure.colorbar(image, ax=axes, location="bottom", shrink=0.45, label="$10^{-11}$ s$^{-2}$")
    ax = figure.add_subplot(grid[1, 0])
    for column, (label, colour) in enumerate((("with halos", OVER), ("without halos", LONE))):
        ax.plot(data["steps"], data["losses"][:, column], color=colour, lw=1.5, label=label)
    ax.set(yscale="log", xlabel="step of the optimizer", title="error, as a share of the variance")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    figure.savefig(folder / PICTURE)
    plt.close(figure)


if __name__ == "__main__":
    picture(Path(sys.argv[1]))
