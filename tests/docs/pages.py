# SPDX-License-Identifier: MIT
"""The pages of the documentation, and the code in them: fenced blocks, and tables of equivalents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CODE_OF_CONDUCT", "SECURITY")]
    + [*(ROOT / "docs").glob("**/*.md")]
    + [*(ROOT / "examples").glob("*/README.md")]
)
# Their blocks are followed one after the other, by test_tutorial.py and test_tools.py.
RUN_PAGES = {ROOT / "docs" / "tutorial.md", ROOT / "docs" / "tools.md"}

_FENCE = re.compile(r"^```(\w*)$")
_SPAN = re.compile(r"`((?:call |\w+\(?1?\)? = )[^`]+)`")  # a statement in a table
_COMMENT = re.compile(r"^<!-- test: (no, because|use|declare|external|call) (.+) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block; `comments` are those of the form ``<!-- test: ... -->`` in the lines directly above it."""

    page: Path
    line: int
    language: str
    text: str
    comments: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """``docs_errors_md_20``: a name for a Fortran procedure, a Python module and a test."""
        return re.sub(r"\W", "_", f"{self.page.relative_to(ROOT)}_{self.line}")

    def comment(self, kind: str) -> list[str]:
        """What the comments of one kind say."""
        return [text for found, text in self.comments if found == kind]

    @property
    def is_tested(self) -> bool:
        return not self.comment("no, because")


def blocks_of(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page, those without a language too.

    In a table directly below ``<!-- test: ... -->`` the statements in the last column are Fortran, each row a block.
    """
    comments: list[tuple[str, str]] = []
    body: list[str] = []
    fence, start = None, 0
    for number, line in enumerate(page.read_text().splitlines(), 1):
        opening = _FENCE.match(line)
        if fence is not None:
            if line == "```":
                yield Block(page, start, fence, "\n".join(body) + "\n", tuple(comments))
                fence, comments = None, []
            else:
                body.append(line)
        elif opening:
            fence, start, body = opening[1], number, []
        elif comment := _COMMENT.match(line):
            comments.append((comment[1], comment[2]))
        elif line.startswith("|") and comments:
            if statements := _SPAN.findall(line.rstrip("|").rpartition("|")[2]):
                yield Block(page, number, "fortran", "\n".join(statements) + "\n", tuple(comments))
        elif line:
            assert "<!-- test" not in line, f"{page.name}:{number}: not understood: {line}"
            comments = []
    assert fence is None, f"{page.name}:{start}: this block is not closed"


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def blocks(language: str) -> list[Block]:
    """The blocks of a language that are tested each by itself."""
    chosen = [block for block in BLOCKS if block.language == language and block.is_tested]
    return [block for block in chosen if block.page not in RUN_PAGES]
