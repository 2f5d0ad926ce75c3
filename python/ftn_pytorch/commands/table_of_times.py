# SPDX-License-Identifier: MIT
"""What ``check --time`` has found, and the table of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Row:
    """One path. Times are in seconds."""

    function: str
    path: str
    seconds: float | None = None
    ratio: float | None = None
    """To the first row of the same function."""
    load_seconds: float | None = None
    memory: int | None = None
    """By how many bytes the memory of the process has grown from before the load to the first result."""
    note: str = ""
    """Why there is no time, or what is special."""


@dataclass
class Report:
    """Everything that the command found. Flops count matrix products and convolutions, as torch does."""

    file: str
    inputs: list[str]
    machine: dict[str, Any] = field(default_factory=dict)
    load_seconds: float = 0.0
    memory: int = 0
    """By how many bytes the memory has grown by loading the file, torch included."""
    parameters: int = 0
    parameter_bytes: int = 0
    flops: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What a program would be told, such as why a function is not recorded."""
    ctypes_seconds: float = 0.0
    """What a call through the library costs more from Python than from Fortran."""
    peak_memory: int = 0
    """Largest resident memory of this process, in bytes."""


def table(report: Report) -> Iterator[str]:
    """Lines for the terminal."""
    machine = report.machine
    torch = f", torch {machine['torch']}, {machine['threads']} threads" * bool(machine["torch"])
    yield f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}{torch}"
    yield f"{os.path.basename(report.file)}, inputs {' '.join(report.inputs)}"
    flops = "".join(f", {count:,} flops in {name}" for name, count in report.flops.items())
    yield f"{report.parameters:,} parameters ({report.parameter_bytes:,} bytes){flops}"
    yield f"loaded in {_time(report.load_seconds)}, {report.memory >> 20} MB, with Python packages that it imports"
    for function in dict.fromkeys(row.function for row in report.rows):
        yield f"\n{function:<34}{'a call':>12}{'ratio':>8}{'first':>10}{'memory':>10}"
        yield from (_line(row) for row in report.rows if row.function == function)
    yield from (f"\nwarning: {text}" for text in report.warnings)
    yield (
        "\nfirst: to load and call once, and memory: what that adds. Calls through the library take "
        f"{1e6 * report.ctypes_seconds:.1f} us more than from Fortran. The process took up to "
        f"{report.peak_memory >> 20} MB."
    )


def _line(row: Row) -> str:
    if row.seconds is None or row.ratio is None:
        return f"  {row.path:<32}{row.note}"
    loaded = "" if row.load_seconds is None else f"{_time(row.load_seconds):>10}{(row.memory or 0) / 2**20:>7.1f} MB"
    return f"  {row.path:<32}{_time(row.seconds):>12}{row.ratio:>8.2f}{loaded:<20}  {row.note}".rstrip()


def _time(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.2f} {name}"
    return f"{1e6 * seconds:.1f} us"
