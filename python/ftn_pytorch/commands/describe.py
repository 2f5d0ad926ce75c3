# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch describe``: what a saved recording holds."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ..checkpoint import file
from ..script import loading
from ..script.framework import import_torch

if TYPE_CHECKING:
    from ..saved.saved_recording import SavedRecording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", help="a saved recording (.ftr)")
    parser.add_argument("--operators", action="store_true", help="list the operators, with how often each is called")
    parser.add_argument("--json", action="store_true", help="for programs")


@dataclass
class Function:
    """One recording of a function."""

    name: str
    arguments: str
    """ "x float32 (B, 16), target float32 (B, 4)": B is the batch size, where any is taken."""
    operators: dict[str, int]
    """How often each is called, in the order of their first calls."""

    def line(self) -> str:
        """Function, arguments and number of operators."""
        count = sum(self.operators.values())
        return f"{self.name}({self.arguments}): {count} operator{'s' * (count != 1)}"


@dataclass
class Report:
    """Everything that the command tells."""

    file: str
    script: str
    torch: str
    """Version that recorded it."""
    written: str
    bytes: int
    functions: list[Function]
    numbers: dict[str, float]
    """Of optimizers. A program changes them with ``set``."""
    arrays: int
    """How many arrays the state has, gradients among them, and how many elements in all."""
    elements: int


def run(chosen: argparse.Namespace) -> int:
    """Tell; FORMAT for a file that is no saved recording."""
    report = examine(chosen.file)
    print(json.dumps(asdict(report), indent=2) if chosen.json else "\n".join(lines(report, chosen.operators)))
    return 0


def examine(path: str) -> Report:
    """Read a file. FILE, CORRUPT, FORMAT: it cannot be read, is damaged, or is no saved recording."""
    path = loading.find(path)
    import_torch(path)
    from ..saved.saved_recording import load_recording

    recording = load_recording(path)
    written = str((file.description(path) or {}).get("written"))
    arrays = recording.arrays.values()
    return Report(
        path,
        recording.script,
        recording.torch,
        written,
        os.path.getsize(path),
        functions_of(recording),
        recording.numbers,
        len(arrays),
        sum(each.numel() for each in arrays),
    )


def functions_of(recording: SavedRecording) -> list[Function]:
    """All recordings of all functions."""
    return [
        Function(name, arguments, dict(Counter(operators)))
        for name in recording.functions()
        for arguments, operators in zip(recording.described(name), recording.operators(name))
    ]


def lines(report: Report, with_operators: bool) -> list[str]:
    """What the command prints."""
    origin = f"recorded from {report.script}, torch {report.torch}"
    found = [f"{os.path.basename(report.file)}: {origin}, {report.bytes:,} bytes, {report.written}"]
    for function in report.functions:
        found.append(f"  {function.line()}")
        if with_operators:
            found += [f"    {count:4} {name}" for name, count in function.operators.items()]
    found.append(f"state: {report.arrays} arrays, {report.elements:,} elements")
    numbers = ", ".join(f"{name} = {value!r}" for name, value in report.numbers.items())
    found.append(f"numbers of optimizers: {numbers or 'none'}")
    return found
