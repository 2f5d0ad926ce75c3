# SPDX-License-Identifier: MIT
"""What a call costs, to the nanosecond: the same functions called from Fortran and from a loop in Python.

Five processes as installed, and one for each way that torch may lack: two minutes. It needs a build with the target
call_overhead.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import machine
from harness.tables import page, table
from harness.turns import take_turns
from harness.worker import Worker, workers

SCRIPT = Path(__file__).resolve().parent / "functions.py"
PROCESSES, ROUNDS = 5, 500
# How an array's tensor is looked at where the extension is not built for this torch.
FALLBACKS = {"kept, getters": {"FTN_PYTORCH_CPP_FUNCTIONS": "0"}}
# Of the table, the way of the process, and how many calls are one turn
WAYS = (
    ("kept", "kept", 1000),
    ("floor", "floor", 1000),
    ("kept, mode safe", "safe", 100),
    ("described", "described", 1000),
    ("walk of 200 blocks", "walk", 1000),
    ("never seen", "fresh", 100),
    ("never seen, floor", "fresh_floor", 1000),
)
ROWS = (
    *(("empty 0", way, f"{asked}:empty0", "python:empty0", calls, 1000) for way, asked, calls in WAYS[:2]),
    *(
        (f"empty {n}", way, f"{asked}:empty{n}", f"python:empty{n}", calls, 1000)
        for n in (1, 3, 8)
        for way, asked, calls in WAYS
    ),
    ("first 3", "result dropped", "dropped:first", "python:first", 1000, 1000),
    ("first 3", "result delivered", "delivered:first", "python:first", 1000, 1000),
    ("mlp forward", "described", "network:forward", "python:forward", 10, 10),
    ("mlp train", "described", "training:train", "python:train", 2, 2),
)

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


def measure(chosen, keep):
    program = machine.program_of(chosen.build, "call_overhead", "call_overhead")
    with machine.described() as found:
        found["build"] = machine.build_type(chosen.build)
        found["rows"] = middle([run_once(program, ROWS, chosen.rounds) for _ in range(PROCESSES)])
        keep(found)
        kept = [row for row in ROWS if row[1] == "kept" and row[0] != "empty 0"]
        for way, environment in FALLBACKS.items():
            found["rows"] += [{**row, "way": way} for row in run_once(program, kept, chosen.rounds, environment)]
    return found


def run_once(
    program: Path, rows: Iterable[Sequence[Any]], rounds: int | None, environment: Mapping[str, str] = {}
) -> list[dict[str, Any]]:
    """All rows in one process, which take turns."""
    environment = {**machine.worker_environment(), **environment}
    with workers({"": [program, SCRIPT]}, environment, machine.last_core()) as started:
        return [summarize(*row) for row in in_turns(started[""], rows, rounds or ROUNDS)]


def in_turns(worker: Worker, rows: Iterable[Sequence[Any]], rounds: int) -> list[tuple[str, str, list, list]]:
    """Case, way, and nanoseconds of a call in each round from Python and from Fortran.

    Each side runs twice in a turn: the first time fills the caches, which another row has left full of its own, and
    does not count. Nor does the first round.
    """

    def ask(request: str, calls: int) -> float:
        return worker.times(request, 2, calls)[1]

    def both(asked: str, floor: str, calls: int, python_calls: int):
        return lambda: (ask(floor, python_calls), ask(asked, calls))

    ways = {(case, way): both(*requests) for case, way, *requests in rows}
    found, failures = take_turns(ways, rounds + 1)
    if failures:
        raise RuntimeError("; ".join(failures.values()))
    return [(*row, *map(list, zip(*times[1:]))) for row, times in found.items()]


def summarize(case: str, way: str, python_ns: Sequence[float], fortran_ns: Sequence[float]) -> dict[str, Any]:
    """The first decile over the turns of both sides in microseconds: something else slows the core down in many turns,
    and as all rows take turns, it does so for all alike."""
    python, fortran = (statistics.quantiles(side, n=10)[0] / 1000 for side in (python_ns, fortran_ns))
    return {
        "case": case,
        "way": way,
        "python_us": python,
        "fortran_us": fortran,
        "difference_us": fortran - python,
        "ratio": fortran / python,
    }


def middle(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Each row from the process in which its ratio was the middle one: where things lie in memory differs from process
    to process, and is worth two percent of a network."""
    return [dict(sorted(rows, key=lambda row: row["ratio"])[len(rows) // 2]) for rows in zip(*runs)]


def markdown(document: Mapping[str, Any]) -> str:
    """The table of all rows and that of the aims."""
    rows = document["rows"]
    times = table(
        ("case", "arrays", "Python, us", "Fortran, us", "difference, us", "ratio"),
        [(row["case"], row["way"], f"{row['python_us']:.3f}", f"{row['fortran_us']:.3f}",
          f"{row['difference_us']:+.3f}", f"{row['ratio']:.3f}") for row in rows],
    )
    judged = table(("aim", "reached", "measured"), aims(rows))
    said = f"{document['build']}. The [README](../README.md) says what the cases and rows mean."
    return page("What a call costs", document, said, "## Rows", times, "## Aims", judged)


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


def draw(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Difference to Python against the number of arrays, a line for each way of passing them."""
    from harness import style

    rows = document["rows"]
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
    return style.save(figure, folder / "call_overhead")
