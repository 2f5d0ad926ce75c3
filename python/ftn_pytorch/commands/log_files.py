# SPDX-License-Identifier: MIT
"""The files of ``ftn_pytorch.kit.Log``, read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import FtnPytorchError


@dataclass(frozen=True)
class Series:
    """One column of a log: the cells that are not empty, in the order of the file, as (steps, values)."""

    file: str
    column: str
    steps: list[int]
    values: list[float]


def read(path: Path) -> list[Series]:
    """All columns of a log, or of those in a folder, files in the order of their ranks.

    FILE if there is nothing to read, FORMAT for a damaged log, or a file that is none.
    """
    if not path.is_dir():
        series = list(_read_file(path))
    else:
        logs = sorted((file for file in path.glob("*.csv") if _is_log(file)), key=_by_rank)
        if not logs:
            raise FtnPytorchError("FILE", f"{path} has no log: no file *.csv whose first column is step")
        series = [each for file in logs for each in _read_file(file)]
    if not any(each.values for each in series):
        raise FtnPytorchError("FILE", f"{path}: nothing has been logged yet")
    return series


def _is_log(file: Path) -> bool:
    if re.search(r"\.\d+\.part\.csv$", file.name):  # what a killed run of version 0.2.0 was writing
        return False
    try:
        with open(file, "rb") as opened:
            return opened.readline(5).rstrip(b"\r\n,") == b"step"
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{file} cannot be read: {failure.strerror}") from failure


def _by_rank(file: Path) -> tuple[list[tuple[int, str]], str]:
    """Numbers within names by their value: log.2.csv before log.10.csv."""
    parts = "".join(letter if letter.isdigit() else f" {letter} " for letter in file.name).split()
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts], file.name


def _read_file(file: Path) -> Iterator[Series]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{file} cannot be read: {failure.strerror}") from failure
    except UnicodeDecodeError as failure:
        raise FtnPytorchError("FORMAT", f"{file} is no log: it holds bytes that are no text") from failure
    # What follows the last end of line is a row that is being written, or that was when the program was killed.
    rows = csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline=""))
    header = next(rows, [])
    if not header:
        return
    if header[0] != "step":
        raise FtnPytorchError("FORMAT", f"{file} is no log: its first column is {header[0]!r}, not step")
    columns = [Series(str(file), name, [], []) for name in header[1:]]
    try:
        _fill(columns, rows)
    except (ValueError, csv.Error) as failure:
        raise FtnPytorchError("FORMAT", f"{file}: line {rows.line_num} is damaged: {failure}") from failure
    yield from columns


def _fill(columns: list[Series], rows: Iterable[list[str]]) -> None:
    for row in rows:
        if len(row) != len(columns) + 1:
            raise ValueError(f"{len(row)} values for {len(columns) + 1} columns")
        step = int(row[0])
        for column, cell in zip(columns, row[1:]):
            if cell:
                column.steps.append(step)
                column.values.append(float(cell))
