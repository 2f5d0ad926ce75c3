# SPDX-License-Identifier: MIT
"""Blocks of a page as a reader follows them: files are written, commands run, what they print is compared.

The line above a file ends with its name between backticks and a colon. Blocks of ``sh`` run in the folder.
A block without a language is the end of what the commands before it print; its numbers may differ by a tenth.
Blocks that say why they are not tested are passed over.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from pages import Block, blocks_of


def blocks_below(page: Path, heading: str) -> list[Block]:
    """The blocks of a page from the line ``## heading`` to the next one of its kind."""
    lines = page.read_text().splitlines()
    first = lines.index(f"## {heading}") + 1
    last = next((number for number, line in enumerate(lines[first:], first) if line.startswith("## ")), len(lines))
    return [block for block in blocks_of(page) if first < block.line <= last]


def name_of(block: Block) -> str:
    above = block.page.read_text().splitlines()[: block.line - 1]
    line = next(line for line in reversed(above) if line and not line.startswith("<!--"))
    found = re.search(r"`([\w.]+)`:$", line)
    assert found, f"{block.page.name}:{block.line}: which file is this?"
    return found[1]


def _words(text: str) -> list[str | float]:
    return [float(word) if re.fullmatch(r"-?\d+\.\d+", word) else word for word in text.split()]


def assert_printed(found: str, shown: str) -> None:
    assert len(_words(found)) == len(_words(shown)), found
    for one, other in zip(_words(found), _words(shown)):
        assert one == (pytest.approx(other, rel=0.1) if isinstance(other, float) else other), found


class Walk:
    """A reader in an empty folder; `variables` are the environment beside PATH and its like."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        kept = {name: text for name, text in os.environ.items() if not name.startswith("FTN_PYTORCH_")}
        self._environment = kept | dict(variables)

    def run(self, *command: object) -> str:
        """What a command prints; it must succeed, without warnings."""
        done = subprocess.run(
            list(map(str, command)), cwd=self.folder, env=self._environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
        warnings = [line for line in done.stderr.splitlines() if line.startswith("ftn_pytorch: warning: ")]
        # Pages tell that this one may come
        assert [line for line in warnings if "Guard: the loss became" not in line] == []
        return done.stdout

    def follow(self, blocks: Iterable[Block]) -> list[str]:
        """Do what the blocks say; the result is what was compared with blocks that have no language."""
        printed, compared = "", []
        for block in blocks:
            if not block.is_tested:
                continue
            if block.language == "sh":
                printed = self.run("bash", "-ec", block.text)
            elif block.language:
                (self.folder / name_of(block)).write_text(block.text)
            else:
                lines = len(block.text.splitlines())
                compared.append("\n".join(printed.splitlines()[-lines:]))
                assert_printed(compared[-1], block.text)
        return compared
