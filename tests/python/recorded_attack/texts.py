# SPDX-License-Identifier: MIT
"""Files of blocks: a line ``### name`` begins each."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def file(name: str) -> str:
    """The text of a file of this folder."""
    return (FOLDER / name).read_text()


def blocks(text: str) -> dict[str, str]:
    """Blocks by name. ValueError where two have one name."""
    found: dict[str, str] = {}
    for part in text.split("\n### ")[1:]:
        name, _, body = part.partition("\n")
        if name in found:
            raise ValueError(f"two blocks are called {name!r}")
        found[name] = f"{body}\n"
    return found
