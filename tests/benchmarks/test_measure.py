# SPDX-License-Identifier: MIT
"""The processes that measure: what they answer becomes rows, and one that fails is one line of the result."""

import sys

import pytest
from analysis import report
from analysis.measure import measure_case
from analysis.plan import QUICK
from analysis.worker import Unavailable, Worker


def measure(setting, *paths, sizes=(32,)):
    return measure_case("mlp", sizes, paths, setting, QUICK, lambda text: None)


def test_times_ratios_and_cold_start_come_from_the_answers(document):
    script = next(row for row in document["results"] if row["path"] == "script")
    assert script["call_us"]["median"] == 10.1
    assert script["ratio"] == pytest.approx(1.01)
    assert script["difference_us"] == pytest.approx(0.1)
    assert script["creation_us"]["median"] == 3000 and script["deletion_us"]["median"] == 1
    assert len(script["rounds_us"]) == QUICK.rounds
    cold = next(row for row in document["cold"] if row["path"] == "script")
    assert (cold["load_ms"], cold["first_call_ms"]) == (2, 1) and cold["start_ms"] > 0 and cold["peak_mib"] > 1


@pytest.mark.parametrize(
    "path, reason",
    [
        ("onnx", "there is no such thing"),
        ("copy", "the process ended with code 1: out of luck"),
        ("compiled", "the process ended with code 1: out of luck"),
        ("torchscript", "the process answered: garbled garbled garbled garbled garbled"),
    ],
)
def test_a_worker_that_fails_is_a_line_of_the_result_and_the_others_are_measured(setting, path, reason):
    outcome = measure(setting, path, "python", "script", sizes=(32, 256))
    assert outcome.unavailable == [{"case": "mlp", "size": size, "path": path, "reason": reason} for size in (32, 256)]
    assert [(row["size"], row["path"]) for row in outcome.results] == [
        (32, "python"),
        (32, "script"),
        (256, "python"),
        (256, "script"),
    ]


def test_a_size_whose_models_could_not_be_written_is_a_line_of_the_result(setting):
    outcome = measure(setting, "python", "script", sizes=(512, 32))
    assert [(line["size"], line["path"]) for line in outcome.unavailable] == [(512, "python"), (512, "script")]
    assert outcome.unavailable[0]["reason"].startswith("models.py failed")
    assert {row["size"] for row in outcome.results} == {32}


def test_a_path_that_cannot_be_created_again_keeps_its_calls(setting):
    outcome = measure(setting, "python", "python-onnx")
    row = next(row for row in outcome.results if row["path"] == "python-onnx")
    assert "creation_us" not in row and row["call_us"]["samples"] > 0
    assert [one["reason"] for one in outcome.unavailable] == ["creation: there is no such thing"]
    facts = {"results": outcome.results, "models": setting.manifest["problems"]}
    assert report.case_table(facts, "mlp").splitlines()[-1].endswith("|  |  |")


def test_a_run_without_plain_python_has_no_ratios(setting):
    (row,) = measure(setting, "script").results
    assert "ratio" not in row and row["call_us"]["min"] == 10.1


def test_a_program_that_cannot_be_started_is_a_line_of_the_result(setting, monkeypatch):
    monkeypatch.setattr(type(setting), "command", lambda self, case, path: ["./there-is-no-such-program"])
    (line,) = measure(setting, "script").unavailable
    assert "there-is-no-such-program" in line["reason"]


def test_memory_of_a_worker_that_has_ended_is_no_failure(setting):
    worker = Worker(setting.command("mlp", "copy"), {})
    assert worker.peak_bytes() > 0
    with pytest.raises(Unavailable, match="out of luck"):
        worker.open(1)
    assert worker.peak_bytes() == 0 and not worker.is_running()
    worker.pin(0)
    worker.close()


def test_a_program_that_says_nothing_is_no_worker():
    with pytest.raises(Unavailable, match="ended with code 3: it said nothing"):
        Worker([sys.executable, "-c", "raise SystemExit(3)"], {})
