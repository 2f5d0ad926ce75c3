# SPDX-License-Identifier: MIT
"""Statistics and tables of the benchmark of all paths."""

import math
import random

import pytest
from harness import summary
from harness.turns import Effort
from paths import report


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
    samples, calls = effort.turn(call_ns)
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
    assert not any("beside libtorch" in name for name, *_ in report.aims(document["results"]))
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


def test_starts_show_their_parts_and_what_they_are_beside_the_script():
    rows = [start("recording", 200, 120), start("script", 800, 300)]
    lines = report.cold_table(rows).splitlines()
    assert lines[2].startswith(
        "| train_step 32 | script, eager | 1 | 2 | 3 | 800 | 801 | 1.00 | 300 | 290 | 280 | yes |"
    )
    assert "| saved recording |" in lines[3] and "| 0.25 | 120 | 110 | 100 |" in lines[3]
    (alone,) = report.cold_table(rows[:1]).splitlines()[2:]
    assert "| 200 | 201 |  | 120 |" in alone


def start(path, total, peak):
    return {
        "case": "train_step",
        "size": 32,
        "path": path,
        "start_ms": 1,
        "load_ms": 2,
        "first_call_ms": 3,
        "total_ms": {"min": total, "median": total + 1},
        "peak_mib": peak,
        "private_mib": peak - 10,
        "dirty_mib": peak - 20,
        "has_python": True,
        "description": "",
    }


@pytest.mark.parametrize("peak, reached", [(200, "yes"), (202, "no")])
def test_memory_is_compared_with_that_of_the_script(peak, reached):
    rows = [start("recording", 200, peak), start("script", 800, 300)]
    found = {aim: (verdict, text) for aim, verdict, text in report.aims([], rows)}
    assert found["train_step, saved recording: peak memory beside script, eager"] == (
        reached,
        f"{peak / 300:.3f}, at most 0.667",
    )
    assert found["train_step, saved recording: written memory beside script, eager"][0] == "yes"


def test_memory_without_a_script_beside_it_is_not_judged():
    assert report.aims([], [start("recording", 200, 100)]) == []


def test_a_saved_recording_is_compared_with_the_recorded_script_and_with_ftorch():
    def row(path, microseconds):
        return {"case": "train_step", "size": 32, "path": path, "call_us": {"min": microseconds}}

    found = report.aims([row("recording", 70), row("recorded", 75), row("ftorch", 100)])
    assert ("train_step 32, saved recording: beside script, recorded", "yes", "0.933, at most 1") in found
    assert ("train_step 32, saved recording: beside FTorch", "no", "0.700, at most 0.6") in found
    assert len(found) == 2


def test_files_show_their_sizes(document):
    lines = report.files_table(document["files"]).splitlines()
    assert lines[0].startswith("| model | saved recording (.ftr), KiB | compiled recording (.code.pt2), KiB |")
    assert lines[2] == "| mlp | 53 |  |  | 29 |  |  |"
    assert lines[3] == "| train_step |  |  | 1,024 |  |  |  |"
    assert "## Files" in report.markdown(document)


def test_starts_alone_have_no_overview(document):
    assert "## Overview" in report.markdown(document)
    assert "## Overview" not in report.markdown({**document, "results": []})
