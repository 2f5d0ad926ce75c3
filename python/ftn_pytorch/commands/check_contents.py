# SPDX-License-Identifier: MIT
"""``check`` of a saved recording without ``--input``: what it holds."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from ..checkpoint import file
from ..script import loading
from ..script.framework import import_torch


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


def run(chosen: argparse.Namespace) -> int:
    """Tell. FILE, CORRUPT, FORMAT: the file cannot be read, is damaged, or is no saved recording."""
    path = loading.find(chosen.file)
    import_torch(path)
    from ..saved.saved_recording import load_recording

    recording = load_recording(path)
    functions = functions_of(recording)
    report = {
        "file": path,
        "script": recording.script,
        "torch": recording.torch,  # the version that recorded it
        "written": str((file.description(path) or {}).get("written")),
        "bytes": os.path.getsize(path),
        "functions": [asdict(each) for each in functions],
        "numbers": recording.numbers,  # of optimizers; a program changes them with set
        "arrays": len(recording.arrays),  # of the state, gradients among them
        "elements": sum(each.numel() for each in recording.arrays.values()),
    }
    print(json.dumps(report, indent=2) if chosen.json else "\n".join(_lines(report, functions, chosen.operators)))
    return 0


def functions_of(recording: Any) -> list[Function]:
    """All recordings of all functions of a ``SavedRecording``."""
    return [
        Function(name, arguments, dict(Counter(operators)))
        for name in recording.functions()
        for arguments, operators in zip(recording.described(name), recording.operators(name))
    ]


def _lines(report: dict[str, Any], functions: list[Function], with_operators: bool) -> list[str]:
    origin = f"recorded from {report['script']}, torch {report['torch']}"
    lines = [f"{os.path.basename(report['file'])}: {origin}, {report['bytes']:,} bytes, {report['written']}"]
    for function in functions:
        lines.append(f"  {function.line()}")
        if with_operators:
            lines += [f"    {count:4} {name}" for name, count in function.operators.items()]
    numbers = ", ".join(f"{name} = {value!r}" for name, value in report["numbers"].items())
    lines.append(f"state: {report['arrays']} arrays, {report['elements']:,} elements")
    return [*lines, f"numbers of optimizers: {numbers or 'none'}"]
