# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch check FILE.ftr``: what a saved recording holds, and whether this torch runs it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

from ..checkpoint import archive, file
from ..errors import FtnPytorchError
from ..runners.models import formats
from ..script import loading
from ..script.framework import import_torch
from . import describe

_WRONG = ("CORRUPT", "FORMAT")
"""Statuses of files that are wrong, and not of what is missing here."""


@dataclass
class Report:
    """Everything that the command found."""

    file: str
    torch: str
    """The version at hand."""
    failure: str = ""
    """Status and text of a file that this torch does not run, empty if it does."""
    content: describe.Report | None = None
    """None for a file that is not read."""
    library: str = ""
    """The version of ftn_pytorch that wrote it."""
    settings: dict[str, Any] | None = None
    """Of torch, while its functions run, and the default type."""

    @property
    def is_fine(self) -> bool:
        return not self.failure


def is_meant(path: str) -> bool:
    """Whether a file is a saved recording, or was one before it was damaged."""
    return path.endswith(".ftr") or (os.path.isfile(path) and formats.identify(path) == formats.RECORDING)


def run(path: str, as_json: bool) -> int:
    """Check: 0 if this torch runs the file, 1 if it is damaged, no saved recording, or for another torch."""
    report = examine(path)
    print(json.dumps({**asdict(report), "is_fine": report.is_fine}, indent=2) if as_json else "\n".join(_lines(report)))
    return 0 if report.is_fine else 1


def examine(path: str) -> Report:
    """Read a file as a program does. FILE: it cannot be read; IMPORT: nothing here runs saved recordings."""
    path = loading.find(path)
    report = Report(path, str(import_torch(path).__version__))
    try:
        report.content = describe.examine(path)
    except FtnPytorchError as failure:
        if failure.status not in _WRONG:
            raise
        report.failure = f"FTN_PYTORCH_ERR_{failure.status}: {failure.text}"
        return report
    recording = archive.loaded(path)["recording"]
    report.settings = {"default_dtype": recording["default_dtype"], **recording["settings"]}
    report.library = str((file.description(path) or {}).get("library"))
    return report


def _lines(report: Report) -> list[str]:
    if report.content is None:
        return [report.failure, f"FAILED with torch {report.torch}"]
    settings = ", ".join(f"{name} = {value}" for name, value in (report.settings or {}).items())
    operators = {name for function in report.content.functions for name in function.operators}
    return [
        *describe.lines(report.content, with_operators=True),
        f"settings: {settings}",
        f"written by ftn_pytorch {report.library} with torch {report.content.torch}, for any torch whose operators fit",
        f"torch {report.torch} runs it: the schemas of {len(operators)} operator{'s' * (len(operators) != 1)} fit",
    ]
