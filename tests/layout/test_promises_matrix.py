# SPDX-License-Identifier: MIT
"""The table of tests/matrix.md is that of the corpus as it is."""

import re
from pathlib import Path

from promises.matrix import PATH, written

TESTS = Path(__file__).resolve().parents[1]


def test_the_table_is_that_of_the_corpus() -> None:
    asked = (TESTS / "promises" / "asked.py").read_text()
    promises = re.findall(r'^    "([\w-]+)": \(', asked, re.MULTILINE)
    assert len(promises) > 2
    assert PATH.read_text() == written(promises), "run python promises --write in tests"
