# SPDX-License-Identifier: MIT
"""The list of pairs of features in tests/README.md names tests that are there, each pair once."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def pairs() -> list[tuple[str, str]]:
    """Features that meet, and the test."""
    _, _, text = (TESTS / "README.md").read_text().partition("## Where features meet")
    return re.findall(r"^\| (.+? × .+?) \| (.+?) \|$", text, re.MULTILINE)


def test_each_pair_of_features_names_a_test_that_is_there() -> None:
    for pair, cell in pairs():
        match = re.fullmatch(r"`([\w/]+\.\w+)::(\w+)`", cell)
        assert match, f"{pair} names no test: {cell}"
        file, name = match.groups()
        text = (TESTS / file).read_text()
        defined = rf"^def {name}\(" if file.endswith(".py") else rf"^ *(?:subroutine|function) {name}\b"
        assert re.search(defined, text, re.MULTILINE), f"{file} has no {name}"


def test_each_pair_of_features_is_there_once() -> None:
    named = [pair for pair, _ in pairs()]
    assert len(named) == len(set(named)) > 50
