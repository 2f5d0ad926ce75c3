# SPDX-License-Identifier: MIT
"""The pictures of the example, from arrays that the program hands over by name.

``python plot.py <output directory>`` draws them again from the data of a finished run.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")  # no window, no display
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import LogNorm  # noqa: E402

DATA, FORECASTS, LEARNING = "online_closure.npz", "forecasts.png", "learning.svg"

# Okabe and Ito (2008): told apart by everyone
LINEAR, QUARTIC, POLYNOMIAL, NETWORK = "#E69F00", "#009E73", "#D55E00", "#0072B2"
FROZEN = "#CC79A7"
# LINEAR and QUARTIC see X(k) alone, POLYNOMIAL is the best one: of degree 4 in the five inputs of the network
NAMES = {
    LINEAR: "linear in $X_k$",
    QUARTIC: "degree 4 in $X_k$",
    POLYNOMIAL: "degree 4, five inputs",
    NETWORK: "network, five inputs",
}
# The fits that are shown, by their place among all
FITS = {0: LINEAR, 1: QUARTIC, 3: POLYNOMIAL}
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
    "svg.fonttype": "none",
    "svg.hashsalt": "ftn_pytorch",
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
        draw_forecasts(kept)
        draw_learning(kept)


def draw_forecasts(d):
    figure, (tendency, error) = plt.subplots(1, 2, figsize=(13, 4.5), layout="constrained")
    draw_tendency(tendency, d)
    draw_error(error, d)
    save(figure, FORECASTS)


def draw_learning(d):
    figure, panels = plt.subplots(
        2, 2, figsize=(14, 5), width_ratios=[1, 1.35], height_ratios=[2.2, 1], sharex="col", sharey="row",
        layout="constrained",
    )  # fmt: skip
    draw_first_act(*panels[:, 0], d)
    draw_second_act(*panels[:, 1], d)
    save(figure, LEARNING)


def save(figure, file):
    for letter, panel in zip("abcdefghi", [panel for panel in figure.axes if panel.get_title("left")]):
        panel.set_title(rf"$\bf{{{letter}}}$  {panel.get_title('left')}")
    figure.savefig(folder / file, dpi=110, metadata={"Date": None} if file.endswith(".svg") else None)
    plt.close(figure)


def draw_tendency(panel, d):
    x, u = d["test_x"].ravel(), d["test_u"].ravel()
    panel.hist2d(x, u, bins=110, range=[[-13, 17], [-21, 13]], cmap="Greys", norm=LogNorm(1, 10_000), rasterized=True)
    order = np.argsort(d["curve_x"].ravel())
    line = d["curve_x"].ravel()[order]
    for curve, colour in zip(d["curves"], (LINEAR, QUARTIC)):
        panel.plot(line, curve.ravel()[order], color=colour, lw=2.4, label=NAMES[colour])
    # What sees the neighbours too has many answers for one X, of which this is the range
    centre, mean, *edges = spread(x, d["test_polynomial"].ravel())
    panel.plot(centre, mean, color=POLYNOMIAL, lw=1.6, ls="--", label=f"{NAMES[POLYNOMIAL]}: mean, 5-95 %")
    for edge in edges:
        panel.plot(centre, edge, color=POLYNOMIAL, lw=1, ls="--")
    centre, mean, *edges = spread(x, d["test_network"].ravel())
    panel.fill_between(centre, *edges, color=NETWORK, alpha=0.3, lw=0)
    for edge in edges:
        panel.plot(centre, edge, color=NETWORK, lw=1)
    panel.plot(centre, mean, color=NETWORK, lw=2.4, label=f"{NAMES[NETWORK]}: mean, 5-95 %")
    panel.set(title="What the fast variables do to X", xlabel="$X_k$", ylabel="sub-grid tendency")
    panel.set(xlim=(-13, 17), ylim=(-21, 25))
    panel.legend(loc="upper right", bbox_to_anchor=(1.04, 1.03), fontsize="small")


def spread(x, values):
    """By classes of X: their centres, the mean of the values, and the limits of the middle 90 %."""
    groups = {left + 0.25: values[(x >= left) & (x < left + 0.5)] for left in np.arange(-13, 17.5, 0.5)}
    groups = {centre: group for centre, group in groups.items() if len(group) >= 100}
    low, high = np.transpose([np.percentile(group, [5, 95]) for group in groups.values()])
    return np.array(list(groups)), [group.mean() for group in groups.values()], low, high


def draw_error(panel, d):
    fits, limit = int(d["fits"]), float(d["limit"])
    time = (np.arange(d["error"].shape[1]) + 1) * d["interval"]
    groups = [(colour, d["error"][i], d["valid"][i]) for i, colour in FITS.items()]
    groups.append((NETWORK, np.concatenate(d["error"][fits:], axis=1), d["valid"][fits:]))
    for colour, error, valid in groups:
        if colour in (LINEAR, NETWORK):
            panel.fill_between(time, *np.percentile(error, [10, 90], axis=1), color=colour, alpha=0.22, lw=0)
        panel.plot(time, error.mean(axis=1), color=colour, label=f"{NAMES[colour]}: valid for {valid.mean():.2f}")
        panel.plot(valid.mean(), limit, "o", color=colour, ms=8, mec="white", zorder=5)
    panel.axhline(limit, color="0.4", lw=1, ls=":")
    panel.text(5, limit, "half a standard deviation", ha="right", va="top", color="0.3", fontsize="small")
    panel.set(title="Forecast error: mean, 10-90 %", xlabel="lead time (time units)", ylabel="error of X")
    panel.set(xlim=(0, 5), ylim=(0, 13.5))
    panel.legend(loc="upper left")


def draw_first_act(skill, loss, d):
    time, fits = centres(d["time_1"]), int(d["fits"])
    skill.plot(time, d["r2_1"], color=NETWORK, lw=1.3)
    levels = {colour: d["r2"][i] for i, colour in FITS.items()}
    for colour, level in levels.items():
        skill.hlines(level, 0, time[-1], color=colour, ls="--")
    levels[NETWORK] = d["r2"][fits:].mean() + 0.03
    for colour, level in levels.items():
        skill.text(time[-1] + 8, level, NAMES[colour], color=colour, va="center")
    skill.set(title="First act: networks learn while the full model runs", ylabel="held-out R$^2$", ylim=(0.42, 1))
    loss.plot(time, d["loss_1"], color=NETWORK, lw=1.3)
    loss.set(xlabel="model time (time units)", ylabel="loss (share\nof variance)")
    loss.set(yscale="log", xlim=(0, 820), ylim=(0.05, 0.5))
    loss.set_yticks([0.1, 0.3], ["0.1", "0.3"])
    loss.minorticks_off()


def draw_second_act(skill, loss, d):
    time = second_axis(skill, d)
    learning, frozen, linear, quartic, polynomial = d["r2_2"].T
    after = time > 0
    for r2, colour, label, place in (
        (linear, LINEAR, f"{NAMES[LINEAR]}, F = 10", "center"),
        (frozen, FROZEN, "frozen at F = 10", "top"),
        (learning, NETWORK, "keeps learning", "bottom"),
    ):
        skill.plot(time, r2, color=colour, lw=plt.rcParams["lines.linewidth"] * (1.3 if r2 is learning else 1))
        skill.text(time[-1] + 4, r2[after][-5:].mean(), label, color=colour, va=place)
    for r2, colour, height in ((quartic, QUARTIC, 0.43), (polynomial, POLYNOMIAL, 0.48)):
        skill.plot(time, r2, color=colour)
        said = f"{NAMES[colour]}, F = 10: R$^2$ = {r2[after].mean():.1f}"
        skill.text(8, height, said, color=colour, va="bottom")
    skill.text(-4, 0.985, "F = 10", ha="right", va="top")
    skill.text(4, 0.985, "F = 20", ha="left", va="top")
    skill.set(title="Second act: the forcing changes (grey: tests, nobody learns)")
    loss.plot(second_axis(loss, d), d["loss_2"], color=NETWORK)
    loss.text(8, 0.45, "rises as the buffer fills with F = 20, which is harder to predict", va="top", fontsize="small")
    loss.set(xlabel="time since the step (time units)")


def second_axis(panel, d):
    """Times since the step at the centres of the windows; marks the step and where nobody learns."""
    time = centres(d["time_2"]) - float(d["step_2"])
    panel.axvline(0, color="0.3", lw=1.2, ls=":")
    for start, end in gaps(time, np.isnan(d["loss_2"][:, 0])):
        panel.axvspan(start, end, color="0.93", lw=0, zorder=0)
    panel.set(xlim=(time[0], time[-1] + 78), xticks=range(-200, 201, 100))
    return time


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
