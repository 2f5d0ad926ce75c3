# SPDX-License-Identifier: MIT
"""How pictures look: fonts, axes with plain numbers, PNG and SVG."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

try:
    import matplotlib
except ImportError as failure:
    raise ImportError("pictures need matplotlib: pip install matplotlib") from failure
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402
from PIL import Image  # noqa: E402

matplotlib.rcParams.update({
    "font.size": 12, "axes.titlesize": 13, "legend.fontsize": 11, "axes.axisbelow": True,
    # Text stays text, and the same picture gives the same file.
    "svg.fonttype": "none", "svg.hashsalt": "ftn_pytorch",
})
# Leading digits of the labels of a logarithmic axis, from coarse to fine.
STEPS = ((1,), (1, 2, 5), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), tuple(1 + place / 10 for place in range(90)))


def save(figure: Any, file: Path) -> list[Path]:
    """Write FILE.png and FILE.svg, and close the figure."""
    png, svg = file.with_suffix(".png"), file.with_suffix(".svg")
    figure.savefig(svg, metadata={"Date": None})
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110)
    plt.close(figure)
    # A palette is enough for lines and text, and a third of the size. An octree keeps the colours of thin lines.
    Image.open(drawn).quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(png, optimize=True)
    return [png, svg]


def plain_log_axis(axis: Any, lowest: float, highest: float) -> None:
    """A logarithmic axis from a little below ``lowest`` to a little above ``highest``, with at least three labels."""
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    margin = (highest / lowest) ** 0.06
    low, high = lowest / max(margin, 1.02), highest * max(margin, 1.02)
    for step in STEPS:
        ticks = [digit * 10.0**power for power in range(-9, 10) for digit in step if low <= digit * 10.0**power <= high]
        if len(ticks) >= 3:
            break
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(low, high)
