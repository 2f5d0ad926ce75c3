# SPDX-License-Identifier: MIT
"""The list of tests/README.md is complete: each pair of features has a test that is there, or a reason in few words."""

import itertools
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def tables() -> dict[str, dict[str, str]]:
    """Feature by feature, what the list says of it with each other one."""
    found: dict[str, dict[str, str]] = {}
    _, _, text = (TESTS / "README.md").read_text().partition("## Where features meet")
    for first, rows in re.findall(r"\| (.+?) × \| test, or why not \|\n\|---\|---\|\n((?:\|.*\n)+)", text):
        found[first] = dict(re.findall(r"\| (.+?) \| (.+?) \|\n", rows))
    return found


def test_each_pair_of_features_is_there() -> None:
    found = tables()
    features = [*found, *list(found.values())[-1]]
    assert len(features) == 15
    wanted = set(itertools.combinations(features, 2))
    assert {(first, second) for first, row in found.items() for second in row} == wanted


def test_each_cell_names_a_test_or_says_why_not() -> None:
    cells = [cell for row in tables().values() for cell in row.values()]
    named = [re.fullmatch(r"`([\w/]+\.\w+)::(\w+)`", cell) for cell in cells]
    for file, name in (match.groups() for match in named if match):
        text = (TESTS / file).read_text()
        defined = rf"^def {name}\(" if file.endswith(".py") else rf"^ *(?:subroutine|function) {name}\b"
        assert re.search(defined, text, re.MULTILINE), f"{file} has no {name}"
    reasons = [cell for cell, match in zip(cells, named) if not match]
    assert all("::" not in each and "`" not in each and len(each.split()) <= 6 for each in reasons)
    assert len(reasons) <= 20
