# SPDX-License-Identifier: MIT
"""Pages and messages have none of the phrases that readers had to read twice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import PAGES, ROOT

# Phrases that readers had to read twice, as patterns for text with single blanks. Each has a plain word.
PHRASES = [
    r"without a word",  # silently
    r"in a hurry",  # fast, small
    r"lives? on that",  # uses that
    r"gives? nonsense",  # gives wrong numbers
    r"(is|are|was|were|be) told",  # is reported; receives; a name of a thing that finds out
    r"\ba mere\b",  # only
    r"who waits gets next",  # waiting calls take turns
    r"the business of",  # done by
    r"it writes into files, it writes",
    r"once more brings",  # another call restores
    r"of values and places, the values",  # the values
    r"where the model is\b",  # on the device of the model
    r"\bwhat [^.;:|()]{1,60}[^,] is what\b",  # X does Y
]
# Habits that make a page tiring, each with better words.
HABITS = [
    r"\banew\b",  # again, new
    r"\bin vain\b",  # a sentence that says what failed
    r"\bfor ever\b",  # without a limit, never released
    r"\bas ever\b",  # as usual
    r"\bmend(s|ed)?\b(?!_)",  # fix
    r"\bsame numbers\b",  # results, values, weights
    r"(^|\. )Of (a|an|the|saved|strings|other|what)\b",  # for, among, with; the noun first
    r"(^|\. )Who \w+s [^.?|]*\.",  # the caller, the thread that
    r"(^|\. )What [^.?|]*\b(is|are|has|have|goes|stays|must|counts) [^.?|]*\.(?!\w)",  # a noun
]


def _literals(path: Path) -> Iterator[tuple[int, str]]:
    """Texts of a source that a program may print, with their lines. Docstrings are none of them."""
    text = path.read_text()
    if path.suffix == ".py":
        tree = ast.parse(text)
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                yield node.lineno, node.value
    else:
        code = re.sub(r"//.*", "", text)
        for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', code):
            yield code.count("\n", 0, found.start()) + 1, re.sub(r'"\s*"', "", found[0])


def _found(where: str, text: str, phrases: list[str]) -> list[str]:
    plain = re.sub(r"\s+", " ", text)
    matches = (re.search(phrase, plain, re.IGNORECASE if phrase in PHRASES else 0) for phrase in phrases)
    return [f"{where}: {match[0]}" for match in matches if match]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_a_phrase_that_is_read_twice(page: Path) -> None:
    paragraphs = re.split(r"\n\s*\n|\n(?=[|#-])", page.read_text())
    assert [each for text in paragraphs for each in _found(text.strip()[:40], text, PHRASES + HABITS)] == []


@pytest.mark.parametrize("folder", ["python", "src"])
def test_no_message_has_one(folder: str) -> None:
    sources = [path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".cpp", ".hpp"}]
    texts = [(path, line, text) for path in sources for line, text in _literals(path)]
    assert len(texts) > 1000
    places = [(f"{path.relative_to(ROOT)}:{line}", text) for path, line, text in texts]
    assert [each for place, text in places for each in _found(place, text, PHRASES + HABITS)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Keeps them\nwithout a word.",
        "The script is told.",
        "What it writes is what it reads.",
        "a mere folder",
        "It begins anew.",
        "It works. What it returns is copied.",
        "It works. Of a saved model, export the network.",
        "Who holds the lock makes the step.",
    ],
)
def test_a_phrase_is_found(text: str) -> None:
    assert _found("here", text, PHRASES + HABITS)


@pytest.mark.parametrize("text", ["What is wrong?", "It says what is wrong.", "The one who waits gets it."])
def test_a_plain_sentence_is_not_found(text: str) -> None:
    assert not _found("here", text, PHRASES + HABITS)
