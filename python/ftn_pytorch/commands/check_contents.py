# SPDX-License-Identifier: MIT
"""``check`` of a saved recording without ``--input``: what it holds, and whether this torch runs it."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from ..checkpoint import archive, file
from ..errors import FtnPytorchError
from ..runners.models import formats
from ..script import loading
from ..script.framework import import_torch

_WRONG = ("CORRUPT", "FORMAT")
"""Statuses of files that are wrong, and not of what is missing here."""


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


def is_meant(path: str) -> bool:
    """Whether a file is a saved recording, or was one before it was damaged."""
    return path.endswith(".ftr") or formats.identify(loading.find(path)) == formats.RECORDING


def run(chosen: argparse.Namespace) -> int:
    """Tell: 0 if this torch runs the file, 1 if it is damaged, no saved recording, or for another torch. FILE: it
    cannot be read; IMPORT: nothing here runs saved recordings."""
    path = loading.find(chosen.file)
    here = str(import_torch(path).__version__)
    try:
        report, functions = _read(path)
    except FtnPytorchError as failure:
        if failure.status not in _WRONG:
            raise
        report, functions = {"file": path, "failure": f"FTN_PYTORCH_ERR_{failure.status}: {failure.text}"}, []
    report["is_fine"] = not report["failure"]
    if chosen.json:
        print(json.dumps(report, indent=2))
    elif report["failure"]:
        print(f"{report['failure']}\nFAILED with torch {here}")
    else:
        print("\n".join(_lines(report, functions, chosen.operators, here)))
    return 0 if report["is_fine"] else 1


def functions_of(recording: Any) -> list[Function]:
    """All recordings of all functions of a ``SavedRecording``."""
    return [
        Function(name, arguments, dict(Counter(operators)))
        for name in recording.functions()
        for arguments, operators in zip(recording.described(name), recording.operators(name))
    ]


def _read(path: str) -> tuple[dict[str, Any], list[Function]]:
    """As a program reads it, with all checks."""
    from ..saved.saved_recording import load_recording

    recording = load_recording(path)
    functions = functions_of(recording)
    about, content = file.description(path) or {}, archive.loaded(path)["recording"]
    return {
        "file": path,
        "failure": "",
        "script": recording.script,
        "torch": recording.torch,  # the version that recorded it
        "library": str(about.get("library")),
        "written": str(about.get("written")),
        "bytes": os.path.getsize(path),
        "functions": [asdict(each) for each in functions],
        "settings": {"default_dtype": content["default_dtype"], **content["settings"]},
        "numbers": recording.numbers,  # of optimizers; a program changes them with set
        "arrays": len(recording.arrays),  # of the state, gradients among them
        "elements": sum(each.numel() for each in recording.arrays.values()),
    }, functions


def _lines(report: dict[str, Any], functions: list[Function], with_operators: bool, here: str) -> list[str]:
    origin = f"recorded from {report['script']}, torch {report['torch']}"
    lines = [f"{os.path.basename(report['file'])}: {origin}, {report['bytes']:,} bytes, {report['written']}"]
    for function in functions:
        lines.append(f"  {function.line()}")
        if with_operators:
            lines += [f"    {count:4} {name}" for name, count in function.operators.items()]
    numbers = ", ".join(f"{name} = {value!r}" for name, value in report["numbers"].items())
    settings = ", ".join(f"{name} = {value}" for name, value in report["settings"].items())
    fit = len({name for function in functions for name in function.operators})
    return [
        *lines,
        f"state: {report['arrays']} arrays, {report['elements']:,} elements",
        f"numbers of optimizers: {numbers or 'none'}",
        f"settings: {settings}",
        f"written by ftn_pytorch {report['library']}, for any torch whose operators fit",
        f"torch {here} runs it: the schemas of {fit} operator{'s' * (fit != 1)} fit",
    ]
