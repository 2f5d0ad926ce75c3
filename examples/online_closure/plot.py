# SPDX-License-Identifier: MIT
"""The picture of the example, from arrays that the program hands over by name.

``python plot.py <output directory>`` draws it again from the data of a finished run.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")  # no window, no display
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import LogNorm  # noqa: E402

DATA, PICTURE = "online_closure.npz", "online_closure.png"

# Okabe and Ito (2008): told apart by everyone
TRUTH, LINEAR, QUARTIC, NETWORK, FROZEN = "black", "#E69F00", "#009E73", "#0072B2", "#CC79A7"
STYLE = {
    "font.size": 11,
    "axes.titlesize": 12.5,
    "figure.titlesize": 15,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 10.5,
    "lines.linewidth": 1.8,
}

kept = {}
folder = Path(".")


def ftn_pytorch_setup(output):
    global folder
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)


def keep(**items):
    """Copy what the program shows: its arrays change or vanish as soon as this function has returned."""
    for name, item in items.items():
        item = np.array(item)
        kept[name] = item.astype(np.float32) if item.size > 100_000 else item


def draw():
    np.savez_compressed(folder / DATA, **kept)
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(16, 10), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.07, h_pad=0.05)
        figure.suptitle("Lorenz '96: networks learn the fast variables inside the running Fortran model", weight="bold")
        top, middle, bottom = figure.subfigures(3, 1, height_ratios=[0.72, 1.1, 1])
        draw_hovmoeller(top.subplots(1, 3, sharex=True, sharey=True), kept)
        panels = middle.subplot_mosaic("abcd;abed", height_ratios=[2, 1])
        draw_tendency(panels["a"], kept)
        draw_error(panels["b"], kept)
        draw_distribution(panels["c"], panels["e"], kept)
        draw_correlation(panels["d"], kept)
        panels = bottom.subplots(2, 2, width_ratios=[1, 1.35], height_ratios=[2.2, 1], sharex="col", sharey="row")
        draw_first_act(*panels[:, 0], kept)
        draw_second_act(*panels[:, 1], kept)
        for letter, panel in zip("abcdefghi", [panel for panel in figure.axes if panel.get_title("left")]):
            panel.set_title(rf"$\bf{{{letter}}}$  {panel.get_title('left')}")
        figure.savefig(folder / PICTURE, dpi=150)
        plt.close(figure)


def draw_hovmoeller(panels, d):
    time = np.arange(len(d["shown_truth"])) * d["interval"]
    edges = np.append(time, time[-1] + d["interval"]) - d["interval"] / 2
    limits = {"cmap": "viridis", "vmin": -12, "vmax": 16}
    difference = d["shown_network"] - d["shown_truth"]
    shown = [
        ("Full model: X in space and time", d["shown_truth"], limits),
        ("Reduced model with the network, same start", d["shown_network"], limits),
        ("Difference (dashed: end of valid time)", difference, {"cmap": "RdBu_r", "vmin": -16, "vmax": 16}),
    ]
    for panel, (title, x, options) in zip(panels, shown):
        sectors = np.arange(x.shape[1] + 1) + 0.5
        mesh = panel.pcolormesh(edges, sectors, x.T, rasterized=True, **options)
        panel.axvline(d["shown_valid"], color="white" if options is limits else "black", ls="--", lw=1.5)
        panel.set(title=title, xlabel="lead time (time units)", yticks=[2, 4, 6, 8])
        panel.spines[:].set_visible(False)
        panel.figure.colorbar(mesh, ax=panel, pad=0.015, aspect=12)
    panels[0].set_ylabel("sector k")


def draw_tendency(panel, d):
    x, u, network = (d[name].ravel() for name in ("test_x", "test_u", "test_network"))
    panel.hist2d(x, u, bins=110, range=[[-13, 17], [-21, 13]], cmap="Greys", norm=LogNorm(1, 10_000), rasterized=True)
    order = np.argsort(d["curve_x"].ravel())
    line = d["curve_x"].ravel()[order]
    for curve, colour, label in zip(d["curves"], (LINEAR, QUARTIC), ("linear", "degree 4")):
        panel.plot(line, curve.ravel()[order], color=colour, lw=2.4, label=label)
    # The network sees the neighbours too: for one X it has many answers, of which this is the range
    edges = np.arange(-13, 17.5, 0.5)
    groups = [network[(x >= left) & (x < left + 0.5)] for left in edges]
    centre = np.array([left + 0.25 for left, group in zip(edges, groups) if len(group) >= 100])
    groups = [group for group in groups if len(group) >= 100]
    low, high = np.transpose([np.percentile(group, [5, 95]) for group in groups])
    mean = [group.mean() for group in groups]
    panel.fill_between(centre, low, high, color=NETWORK, alpha=0.3, lw=0)
    for edge in (low, high):
        panel.plot(centre, edge, color=NETWORK, lw=1)
    panel.plot(centre, mean, color=NETWORK, lw=2.4, label="network: mean, 5-95 %")
    panel.set(title="What the fast variables do to X", xlabel="$X_k$", ylabel="sub-grid tendency")
    panel.set(xlim=(-13, 17), ylim=(-21, 13))
    panel.legend(loc="lower left")


def draw_error(panel, d):
    fits, limit = int(d["fits"]), float(d["limit"])
    time = (np.arange(d["error"].shape[1]) + 1) * d["interval"]
    groups = [
        ("linear", LINEAR, d["error"][0], d["valid"][0]),
        ("degree 4", QUARTIC, d["error"][1], d["valid"][1]),
        ("network", NETWORK, np.concatenate(d["error"][fits:], axis=1), d["valid"][fits:]),
    ]
    for name, colour, error, valid in groups:
        if name != "degree 4":
            panel.fill_between(time, *np.percentile(error, [10, 90], axis=1), color=colour, alpha=0.22, lw=0)
        panel.plot(time, error.mean(axis=1), color=colour, label=f"{name}: valid for {valid.mean():.2f}")
        panel.plot(valid.mean(), limit, "o", color=colour, ms=8, mec="white", zorder=5)
    panel.axhline(limit, color="0.4", lw=1, ls=":")
    panel.text(5, limit, "half a standard deviation", ha="right", va="top", color="0.3", fontsize=10)
    panel.set(title="Forecast error: mean, 10-90 %", xlabel="lead time (time units)", ylabel="error of X")
    panel.set(xlim=(0, 5), ylim=(0, 12.5))
    panel.legend(loc="upper left")


CLIMATES = (
    ("full model", TRUTH, "-", 3.2),
    ("linear", LINEAR, "-", 1.6),
    ("degree 4", QUARTIC, "-", 1.6),
    ("network", NETWORK, "--", 2.2),
)


def draw_distribution(panel, below, d):
    x = d["bin_start"] + d["bin_width"] * (np.arange(d["density"].shape[1]) + 0.5)
    for density, (_name, colour, style, width) in zip(d["density"], CLIMATES):
        panel.plot(x, density, style, color=colour, lw=width)
        below.plot(x, 100 * (density - d["density"][0]), style, color=colour, lw=width)
    panel.set(title="Climate: distribution of X", ylabel="density", xlim=(-13, 18), ylim=(0, None), xticklabels=[])
    below.set(xlabel="$X_k$", ylabel="difference\n× 100", xlim=(-13, 18))


def draw_correlation(panel, d):
    lag = np.arange(d["correlation"].shape[1]) * d["interval"]
    panel.axhline(0, color="0.7", lw=1)
    for correlation, (name, colour, style, width) in zip(d["correlation"], CLIMATES):
        panel.plot(lag, correlation, style, color=colour, lw=width, label=name)
    panel.set(title="Climate: autocorrelation of X", xlabel="lag (time units)", ylabel="correlation", xlim=(0, lag[-1]))
    panel.legend(loc="upper right")


def draw_first_act(skill, loss, d):
    time = centres(d["time_1"])
    skill.plot(time, d["r2_1"], color=NETWORK, lw=1.3)
    loss.plot(time, d["loss_1"], color=NETWORK, lw=1.3)
    fits = int(d["fits"])
    skill.axhline(d["r2"][0], color=LINEAR, ls="--")
    skill.axhline(d["r2"][1], color=QUARTIC, ls="--")
    end = time[-1]
    skill.text(end, d["r2"][fits:].mean() + 0.02, f"network, {d['r2_1'].shape[1]} seeds", color=NETWORK, ha="right")
    skill.text(end, d["r2"][1] + 0.005, "degree 4, all samples", color=QUARTIC, ha="right", va="bottom")
    skill.text(end, d["r2"][0] - 0.015, "linear, all samples", color=LINEAR, ha="right", va="top")
    skill.set(title="First act: networks learn while the full model runs", ylabel="held-out R$^2$", ylim=(0.48, 1))
    loss.set(xlabel="model time (time units)", ylabel="loss", yscale="log", xlim=(0, None), ylim=(0.05, 0.5))
    loss.set_yticks([0.1, 0.3], ["0.1", "0.3"])
    loss.minorticks_off()


def draw_second_act(skill, loss, d):
    step = float(d["step_2"])
    time = centres(d["time_2"]) - step
    learning, frozen, linear, quartic = d["r2_2"].T
    skill.plot(time, quartic, color=QUARTIC)
    skill.plot(time, linear, color=LINEAR)
    skill.plot(time, frozen, color=FROZEN)
    skill.plot(time, learning, color=NETWORK, lw=2.4)
    loss.plot(time, d["loss_2"], color=NETWORK)
    last = time[-1] + 4
    after = time > 0
    for r2, colour, label, place in (
        (learning, NETWORK, "keeps learning", "bottom"),
        (frozen, FROZEN, "frozen at F = 10", "top"),
        (linear, LINEAR, "linear, F = 10", "center"),
    ):
        skill.text(last, r2[after][-5:].mean(), label, color=colour, va=place)
    skill.text(8, 0.485, f"degree 4, F = 10: R$^2$ = {quartic[after].mean():.1f}", color=QUARTIC, va="bottom")
    for panel in (skill, loss):
        panel.axvline(0, color="0.3", lw=1.2, ls=":")
        for start, end in gaps(time, np.isnan(d["loss_2"][:, 0])):
            panel.axvspan(start, end, color="0.93", lw=0, zorder=0)
    skill.text(-4, 0.985, "F = 10", ha="right", va="top")
    skill.text(4, 0.985, "F = 20", ha="left", va="top")
    skill.set(title="Second act: the forcing changes (grey: tests, nobody learns)")
    loss.set(xlabel="time since the step (time units)", xlim=(time[0], last + 62), xticks=range(-200, 201, 100))


def centres(window_ends):
    return window_ends - (window_ends[1] - window_ends[0]) / 2


def gaps(time, missing):
    """First and last time of each stretch where something is missing."""
    half = (time[1] - time[0]) / 2
    edges = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]]).astype(int)))
    return [(time[first] - half, time[last - 1] + half) for first, last in edges.reshape(-1, 2)]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    kept.update(np.load(folder / DATA))
    draw()
