# SPDX-License-Identifier: MIT
"""Results in a file: JSON with a line for each row, which is small, and in which a change can be seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCHEMA = 3
# More digits than any measurement has.
DIGITS = 5


def write(document: Mapping[str, Any], file: Path) -> None:
    """Write a document with the schema's number; lists of rows get a line for each row."""
    parts = []
    for name, value in {"schema": SCHEMA, **_rounded(document)}.items():
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]"
        else:
            text = json.dumps(value)
        parts.append(f" {json.dumps(name)}: {text}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def read(file: Path) -> dict[str, Any]:
    """What write has written. OSError if there is no such file, ValueError if it is another one."""
    document = json.loads(file.read_text())
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"{file} has no results of schema {SCHEMA}")
    del document["schema"]
    return document


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return value
