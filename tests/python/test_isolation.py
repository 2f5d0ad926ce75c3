# SPDX-License-Identifier: MIT
"""What the tests of this folder rely on: one leaves nothing behind for another."""

import sys


def test_what_a_test_undoes_is_its_own(monkeypatch):
    path = sys.path
    monkeypatch.undo()
    assert sys.path is path, "a test that loads a script would leave its folder behind"
