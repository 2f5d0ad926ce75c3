# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch plot``: the files of ``ftn_pytorch.kit.Log`` as pictures."""

from __future__ import annotations

import csv
import io
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from .errors import FtnPytorchError


@dataclass(frozen=True)
class Series:
    """One column of a log: the cells that are not empty, in the order of the file, as (steps, values)."""

    file: str
    column: str
    steps: list[int]
    values: list[float]


def add_arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "log", type=Path, help="a folder with CSV files of Log, such as those of all ranks, or one file"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="NAME",
        help="write NAME.png and NAME.svg; NAME may end in either (default: run, in that folder)",
    )


def run(chosen: Namespace) -> int:
    """Draw what is in the logs: 0, or 1 with the reason on standard error."""
    try:
        folder = chosen.log if chosen.log.is_dir() else chosen.log.parent
        output = folder / "run" if chosen.output is None else chosen.output
        if output.suffix in (".png", ".svg"):
            output = output.with_suffix("")
        series = read(chosen.log)
        panels = _panels()
        _write(panels.draw(series, "/".join(chosen.log.resolve().parts[-2:])), output)
    except FtnPytorchError as failure:
        print(f"plot: {failure.text}", file=sys.stderr)
        return 1
    return 0


def _panels() -> ModuleType:
    try:
        from . import panels
    except ImportError as failure:
        raise FtnPytorchError(
            "IMPORT",
            f"pictures need matplotlib, which cannot be imported ({failure}). Install it with: "
            f"{sys.executable} -m pip install matplotlib",
        ) from failure
    return panels


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


def _write(pictures: dict[str, bytes], output: Path) -> None:
    """Write each picture completely or not at all."""
    for ending, content in pictures.items():
        # No with_suffix: what follows a point in the name belongs to it.
        file = output.with_name(f"{output.name}.{ending}")
        part = file.with_name(f"{file.name}.{os.getpid()}.part")
        try:
            part.write_bytes(content)
            os.replace(part, file)
        except OSError as failure:
            part.unlink(missing_ok=True)
            raise FtnPytorchError("FILE", f"{file} cannot be written: {failure.strerror}") from failure
        print(file)
