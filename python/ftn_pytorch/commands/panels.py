# SPDX-License-Identifier: MIT
"""The picture of a run: which columns of its logs belong to which panel, and how they are drawn. Needs matplotlib."""

from __future__ import annotations

import io
import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.rcsetup import cycler
from matplotlib.style import context
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from .log_files import Series

MARK = "ftn_pytorch plot"
"""Stands in each picture, by which those of this command are known."""
# What a picture can be, and how it is made: the same run gives the same file.
FORMATS: dict[str, Any] = {
    "png": {"dpi": 150, "metadata": {"Software": MARK}},
    "svg": {"metadata": {"Date": None, "Creator": MARK}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": MARK}},
}


@dataclass(frozen=True)
class Panel:
    """A column belongs here if it has one of ``names``, or one of them with an addition: ``loss_wind``."""

    label: str
    names: tuple[str, ...]
    is_logarithmic: bool = False
    is_share: bool = False
    is_from_zero: bool = False

    def has(self, column: str) -> bool:
        return any(column == name or column.startswith(f"{name}_") for name in self.names)


# A column goes to the first one that has it.
PANELS = (
    Panel("training loss", ("loss",), is_logarithmic=True),
    Panel("skill", ("skill", "r2", "held_out_skill", "held_out_r2")),
    Panel("held-out loss", ("held_out",), is_logarithmic=True),
    Panel("learning rate", ("lr",), is_logarithmic=True),
    Panel("norm of the gradient", ("gradient_norm",), is_logarithmic=True),
    Panel("time in Python, share of the run", ("python_share",), is_share=True, is_from_zero=True),
    Panel("time in Python in seconds", ("python_seconds",), is_from_zero=True),
    Panel("drift of the inputs in standard deviations", ("drift",), is_from_zero=True),
)

# Okabe and Ito (2008): told apart by everyone. Black and yellow of theirs are left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", "--", ":", "-.")
STYLE = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "legend.frameon": False,
    "legend.fontsize": 10,
    "lines.linewidth": 1.6,
    # Text stays text.
    "svg.fonttype": "none",
    "svg.hashsalt": "ftn_pytorch",
    "axes.prop_cycle": cycler(color=COLOURS),
}
# More points than that are not told apart in a panel: what is longer is drawn as so many medians.
POINTS = 150


def draw(series: Sequence[Series], name: str, endings: Sequence[str]) -> dict[str, bytes]:
    """The picture of a run called ``name``, as the content of files with these endings."""
    series = [each for each in series if _can_be_seen(each)] or [each for each in series if each.values]
    shown = [(panel, [each for each in series if _panel_of(each.column) == panel]) for panel in _chosen(series)]
    columns = min(len(shown), 2 if len(shown) in (2, 4) else 3)
    rows = math.ceil(len(shown) / columns)
    # A loss that explodes may be near the largest number.
    with context(["default", STYLE]), np.errstate(over="ignore"):
        figure = Figure(figsize=(4.4 * columns + 0.4, 2.9 * rows + 0.5), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(name, x=0.01, ha="left", weight="bold", size=14)
        axes = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
        colours = _colours(list(dict.fromkeys(each.file for each in series)))
        for axis, (panel, drawn) in zip(axes, shown):
            _draw_panel(axis, panel, drawn, colours)
        steps = {step for each in series for step in (each.steps[0], each.steps[-1])}
        if len(steps) == 1:
            # Thousandths of a step otherwise.
            axes[0].set_xlim(min(steps) - 1, min(steps) + 1)
        for axis in axes[len(shown) :]:
            axis.remove()
        if len(colours) > 1:
            names = list(colours)
            names = names if len(names) <= len(COLOURS) else [names[0], names[len(names) // 2], names[-1]]
            lines = [Line2D([], [], color=colours[name], label=Path(name).stem) for name in names]
            figure.legend(handles=lines, loc="outside upper right", ncols=len(lines), handlelength=1.6)
        for axis in figure.axes[-columns:]:
            axis.set_xlabel("step")
            axis.tick_params(labelbottom=True)
        pictures = {}
        for ending in endings:
            stream = io.BytesIO()
            figure.savefig(stream, format=ending, **FORMATS[ending])
            pictures[ending] = stream.getvalue()
    return pictures


def _can_be_seen(series: Series) -> bool:
    """False for a drift that is not known yet; losses that are no numbers are marked."""
    return any(map(math.isfinite, series.values)) or bool(series.values and _panel_of(series.column).is_logarithmic)


def _panel_of(column: str) -> Panel:
    return next((panel for panel in PANELS if panel.has(column)), Panel(column, (column,)))


def _chosen(series: Sequence[Series]) -> list[Panel]:
    """Panels that something was logged for, those of the table first."""
    found = list(dict.fromkeys(_panel_of(each.column) for each in series))
    return sorted(found, key=lambda panel: PANELS.index(panel) if panel in PANELS else len(PANELS))


def _draw_panel(axis: Any, panel: Panel, drawn: Sequence[Series], colours: dict[str, Any]) -> None:
    """``colours``: of the files, if there are several. Line styles tell columns apart then, and else colours do."""
    columns = list(dict.fromkeys(each.column for each in drawn))
    looks = [(colour, "-") for colour in _colours(columns).values()]
    if len(colours) > 1:
        looks = [("0.3", style) for style, _ in zip(itertools.cycle(STYLES), columns)]
    finite = np.concatenate([np.asarray(each.values)[np.isfinite(each.values)] for each in drawn])
    if panel.is_logarithmic and finite.size and finite.min() > 0:
        _set_logarithmic(axis, finite)
    for each in drawn:
        colour, style = looks[columns.index(each.column)]
        colour = colours[each.file] if len(colours) > 1 else colour
        _draw_series(axis, each, colour, style)
        if panel.is_logarithmic:
            _mark_not_finite(axis, each, colour)
    axis.set(ylabel=panel.label)
    if panel.is_share:
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g} %"))
    if panel.is_from_zero:
        axis.set_ylim(bottom=0)
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    if len(columns) > 1:
        lines = [Line2D([], [], color=colour, ls=style, label=name) for name, (colour, style) in zip(columns, looks)]
        axis.legend(handles=lines, handlelength=1.8)


def _colours(names: Sequence[str]) -> dict[str, Any]:
    if len(names) <= len(COLOURS):
        return dict(zip(names, COLOURS))
    # The order of many ranks says more than which is which.
    return dict(zip(names, colormaps["viridis"](np.linspace(0, 0.9, len(names)))))


def _set_logarithmic(axis: Any, finite: Any) -> None:
    axis.set_yscale("log")
    if finite.max() / finite.min() < 30:
        # Powers of ten alone would be one label, or none.
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def _draw_series(axis: Any, series: Series, colour: Any, style: str) -> None:
    steps, middle = thinned(np.asarray(series.steps, float), np.asarray(series.values, float))
    axis.plot(steps, middle, style, color=colour)
    # A line shows nothing of a value between two gaps.
    edges = np.concatenate([[np.nan], middle, [np.nan]])
    alone = np.isfinite(middle) & np.isnan(edges[:-2]) & np.isnan(edges[2:])
    axis.plot(steps[alone], middle[alone], "o", ms=3, color=colour)


def _mark_not_finite(axis: Any, series: Series, colour: Any) -> None:
    """Ticks at the lower edge."""
    steps = np.asarray(series.steps)[~np.isfinite(series.values)]
    if not steps.size:
        return
    width = max(np.ptp(series.steps) / POINTS, 1)
    places = np.unique(steps // width) * width
    edge = axis.get_xaxis_transform()
    axis.plot(places, np.zeros(len(places)), "|", ms=8, mew=1.5, color=colour, clip_on=False, transform=edge)


def thinned(steps: Any, values: Any) -> tuple[Any, Any]:
    """Medians of steps and values in up to ``POINTS`` stretches with equally many; NaN for a gap.

    A gap is where no value of a stretch is finite, or where the next value is ten times as far away as usual.
    """
    values = np.where(np.isfinite(values), values, np.nan)
    size = max(math.ceil(len(values) / POINTS), 1)
    filling = np.full(-len(values) % size, np.nan)
    groups = np.concatenate([values, filling]).reshape(-1, size)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        steps = np.nanmedian(np.concatenate([steps, filling]).reshape(-1, size), axis=1)
        middle = np.nanmedian(groups, axis=1)
    apart = np.diff(steps)
    gaps = np.flatnonzero(apart > 10 * np.median(apart)) + 1 if len(apart) else np.empty(0, int)
    return np.insert(steps, gaps, np.nan), np.insert(middle, gaps, np.nan)
