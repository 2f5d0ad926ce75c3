# SPDX-License-Identifier: MIT
"""Statistics and tables of the benchmark of all paths."""

import math
import random

import pytest
from analysis import report, summary
from analysis.plan import Effort, turn


@pytest.mark.parametrize("count", [1, 2, 3, 99, 100, 101, 1000])
def test_statistics_are_ordered_and_from_the_values(count):
    values = [random.Random(count + place).lognormvariate(3, 2) for place in range(count)]
    found = summary.summarize(values)
    assert found["min"] <= found["median"] <= found["p99"] <= found["max"]
    assert found["min"] == min(values) and found["max"] == max(values) and found["samples"] == len(values)
    assert found["p99"] in values
    assert sum(value <= found["p99"] for value in values) >= 0.99 * len(values)
    assert math.isclose(found["mean"], math.fsum(values) / len(values), rel_tol=1e-9)


def test_the_percentile_is_that_of_a_hundred_values():
    assert summary.summarize(range(1, 101))["p99"] == 99
    assert summary.summarize(range(1, 11))["p99"] == 10


def test_a_drift_of_the_machine_does_not_show_in_ratio_and_difference():
    floor = [[speed * 10.0] for speed in (1, 2, 3)]
    other = [[speed * 15.0] for speed in (1, 2, 3)]
    assert summary.ratio(other, floor) == 1.5
    assert summary.difference(other, floor) == 10


@pytest.mark.parametrize(
    "ask", [lambda: summary.summarize([]), lambda: summary.ratio([], []), lambda: summary.difference([[1.0]], [])]
)
def test_nothing_cannot_be_summarized(ask):
    with pytest.raises(ValueError, match="no "):
        ask()


@pytest.mark.parametrize("call_ns", [1, 80, 3e3, 5e3, 7.4e3, 1e5, 1e8, 3e9])
def test_a_turn_keeps_to_its_budget(call_ns):
    effort = Effort()
    samples, calls = turn(call_ns, effort)
    assert 1 <= samples <= effort.samples and calls >= 1
    assert samples == 1 or samples * calls * call_ns <= 1e9 * effort.seconds / effort.rounds
    assert calls == 1 or calls * call_ns < 2 * effort.sample_ns


def test_a_wrong_result_is_not_measured_but_reported(document):
    assert [row["path"] for row in document["wrong"]] == ["direct"]
    assert "direct" not in {row["path"] for row in document["results"]}
    assert "WRONG RESULTS" in report.markdown(document)


def test_a_path_without_model_says_why(document):
    assert document["unavailable"] == [{"case": "mlp", "size": 32, "path": "pt2", "reason": "no compiler"}]
    assert "| .pt2, direct | mlp (32) | no compiler |" in report.markdown(document)


def test_tables_have_a_line_for_each_path_and_hold_the_numbers(document):
    text = report.case_table(document, "mlp")
    assert text.startswith("5,508 parameters.")
    assert [line.split(" | ")[1] for line in text.splitlines()[-2:]] == ["plain Python", "script, eager"]
    assert "| 1.010 | +0.10 |" in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert len(widths) == 1


def test_overview_compares_the_fastest_calls(document):
    lines = report.overview(document["results"]).splitlines()
    assert lines[-3] == "| case | size | plain Python, us | script, eager, x |"
    assert lines[-1] == "| mlp | 32 | 10.00 | 1.01 |"


def test_aims_are_judged_by_the_numbers(document):
    aim = "mlp 32, script beyond 1.02 of plain Python"
    assert (aim, "yes", "-0.10 us, at most 0.5") in report.aims(document["results"])
    assert ("mlp 32, direct: beside libtorch by hand", "not measured", "") in report.aims(document["results"])
    slow = [{**row, "call_us": {"min": 15.1}} if row["path"] == "script" else row for row in document["results"]]
    assert (aim, "no", "+4.90 us, at most 0.5") in report.aims(slow)


def test_ftorch_is_the_one_to_compare_with_where_it_was_measured(document):
    script = next(row for row in document["results"] if row["path"] == "script")
    others = [
        {**script, "path": path, "call_us": {"min": factor}}
        for path, factor in (("direct", 1), ("libtorch", 2), ("ftorch", 0.8))
    ]
    assert ("mlp 32, direct: beside libtorch by hand", "yes", "0.500, at most 1") in report.aims(others[:2])
    assert ("mlp 32, direct: beside FTorch", "no", "1.250, at most 1") in report.aims(others)
