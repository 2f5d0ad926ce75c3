# SPDX-License-Identifier: MIT
"""What a call costs: statistics, table, aims and picture of the program call_overhead."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .report import table

HEAD = """# What a call costs

Written by `make bench`. The [README](../README.md) says what the cases and rows mean."""

# How the picture names the rows, its colours, markers and kinds of lines.
STYLES = {
    "floor": ("no library: Python's lock and the call alone", "#000000", "o", "--"),
    "kept": ("the same in each call (default)", "#0072B2", "s", "-"),
    "described": ("described in each call", "#56B4E9", "^", "-"),
    "walk of 200 blocks": ("200 blocks in turn", "#009E73", "P", "-"),
    "kept, getters": ("the same; Python is asked for all", "#8C5B80", "d", "-."),
    "never seen": ("new in each call", "#D55E00", "v", "-"),
    "never seen, floor": ("no library: torch makes a tensor of each", "#999999", ">", "--"),
    "kept, mode safe": ("the same; mode=\"safe\"", "#E69F00", "X", "-"),
}


def summarize(row: Mapping[str, Any]) -> dict[str, Any]:
    """The first decile over the turns of both sides in microseconds: something else slows the core down in many turns,
    and as all rows take turns, it does so for all alike."""
    python, fortran = (statistics.quantiles(row[side], n=10)[0] / 1000 for side in ("python_ns", "fortran_ns"))
    return {
        "case": row["case"],
        "way": row["way"],
        "python_us": python,
        "fortran_us": fortran,
        "difference_us": fortran - python,
        "ratio": fortran / python,
    }


def middle(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Each row from the process in which its ratio was the middle one: where things lie in memory differs from process
    to process, and is worth two percent of a network."""
    processes = [[summarize(row) for row in rows] for rows in runs]
    return [sorted(rows, key=lambda row: row["ratio"])[len(rows) // 2] for rows in zip(*processes)]


def markdown(document: Mapping[str, Any]) -> str:
    """The table of all rows and that of the aims."""
    found, rows = document["machine"], document["rows"]
    setting = (
        f"{found['processor']}, {found['cores']} cores; {found['system']}. Load before and after: "
        f"{found['load_before']}, {found['load_after']}. Python {document['versions']['python']}, torch "
        f"{document['versions']['torch']}. {document['build']}."
    )
    times = table(
        ("case", "arrays", "Python, us", "Fortran, us", "difference, us", "ratio"),
        [(row["case"], row["way"], f"{row['python_us']:.3f}", f"{row['fortran_us']:.3f}",
          f"{row['difference_us']:+.3f}", f"{row['ratio']:.3f}") for row in rows],
    )
    judged = table(("aim", "reached", "measured"), aims(rows))
    return "\n\n".join((HEAD, setting, "## Rows", times, "## Aims", judged)) + "\n"


def aims(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """What the design asks for: the aim, whether it was reached, and the numbers."""
    found = {(row["case"], row["way"]): row for row in rows}

    def beyond(case: str, way: str, base: str | None = None, arrays: int = 1) -> float:
        """Microseconds beyond Python, or beyond another row; for each of some arrays."""
        value = found[case, way]["difference_us"] - (found[case, base]["difference_us"] if base else 0)
        return value / arrays

    each = (
        ("three arrays, kept, every check", beyond("empty 3", "kept"), 0.15),
        ("three arrays, described beyond kept", beyond("empty 3", "described", "kept"), 0.10),
        ("a result delivered beyond dropped", beyond("first 3", "result delivered", "result dropped"), 0.15),
        ("each of three arrays never seen beyond kept", beyond("empty 3", "never seen", "kept", 3), 0.45),
    )
    lines = [(aim, "yes" if value <= limit else "no", f"{value:+.3f} us, at most {limit:.2f}")
             for aim, value, limit in each]
    for case in ("mlp forward", "mlp train"):
        ratio = found[case, "described"]["ratio"]
        lines.append((f"{case}, ratio to Python", "yes" if ratio <= 1.02 else "no", f"{ratio:.3f}, at most 1.02"))
    return lines


def draw(rows: Sequence[Mapping[str, Any]], file: Path) -> list[Path]:
    """Difference to Python against the number of arrays, a line for each way of passing them; PNG and SVG. ImportError
    without matplotlib."""
    from . import style

    figure, panel = style.plt.subplots(figsize=(10, 5.2), layout="constrained")
    shown = [row for row in rows if row["case"].startswith("empty") and row["difference_us"] > 0]
    # In the order of the lines at their right end, so that the legend can be read beside them.
    ends = {row["way"]: row["difference_us"] for row in sorted(shown, key=lambda row: int(row["case"].split()[1]))}
    for way in sorted(ends, key=lambda way: -ends[way]):
        label, color, marker, line = STYLES[way]
        points = sorted((int(row["case"].split()[1]), row["difference_us"]) for row in shown if row["way"] == way)
        panel.plot(*zip(*points), color=color, marker=marker, linestyle=line, label=label, markersize=7, linewidth=1.8)
    style.plain_log_axis(panel.yaxis, min(row["difference_us"] for row in shown),
                         max(row["difference_us"] for row in shown))
    panel.set_xticks(sorted({int(row["case"].split()[1]) for row in shown}))
    panel.set_xlabel("arrays passed (64 x 32, double precision)")
    panel.set_ylabel("microseconds beyond the same call in Python")
    panel.set_title("Calling an empty Python function from Fortran", loc="left")
    panel.grid(True, alpha=0.3)
    figure.legend(*panel.get_legend_handles_labels(), title="The arrays are", alignment="left", frameon=False,
                  loc="outside right upper", handlelength=3.5)
    return style.save(figure, file)
