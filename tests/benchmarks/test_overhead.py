# SPDX-License-Identifier: MIT
"""Statistics, table and aims of call_overhead."""

import pytest
from call_overhead import benchmark as overhead


def row(case, way, difference, python=0.02):
    return {
        "case": case,
        "way": way,
        "python_us": python,
        "fortran_us": python + difference,
        "difference_us": difference,
        "ratio": (python + difference) / python,
    }


@pytest.fixture
def rows():
    return [
        row("empty 3", "kept", 0.12),
        row("empty 3", "described", 0.2),
        row("empty 3", "never seen", 1.2),
        row("first 3", "result dropped", 0.1),
        row("first 3", "result delivered", 0.3),
        row("mlp forward", "described", 0.3, 30),
        row("mlp train", "described", 20, 400),
    ]


def test_the_first_decile_is_not_that_of_disturbed_turns():
    turns = [10000.0] * 60 + [90000.0] * 40
    found = overhead.summarize("c", "w", turns, [2 * t for t in turns])
    assert (found["python_us"], found["fortran_us"], found["difference_us"], found["ratio"]) == (10, 20, 10, 2)


def test_each_row_is_that_of_the_process_in_the_middle():
    runs = [[overhead.summarize("c", "w", [10.0] * 20, [fortran] * 20)] for fortran in (50.0, 20.0, 30.0)]
    assert [one["ratio"] for one in overhead.middle(runs)] == [3]


def test_aims_are_judged_beyond_the_row_they_name(rows):
    assert [(reached, measured) for _, reached, measured in overhead.aims(rows)] == [
        ("yes", "+0.120 us, at most 0.15"),
        ("yes", "+0.080 us, at most 0.10"),
        ("no", "+0.200 us, at most 0.15"),
        ("yes", "+0.360 us, at most 0.45"),
        ("yes", "1.010, at most 1.02"),
        ("no", "1.050, at most 1.02"),
    ]


def test_the_table_has_a_line_for_each_row(rows):
    machine = {"processor": "P", "cores": 2, "memory_gib": 1, "system": "S", "load_before": 0, "load_after": 0}
    text = overhead.markdown(
        {"machine": machine, "versions": {"python": "3", "torch": "2"}, "build": "Release", "rows": rows}
    )
    assert all(f"| {one['case']} | {one['way']} | " in text for one in rows)
    assert "| empty 3 | kept | 0.020 | 0.140 | +0.120 | 7.000 |" in text
