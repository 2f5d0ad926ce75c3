# SPDX-License-Identifier: MIT
"""The analysis of the benchmark: statistics, tables, pictures, and the processes that measure."""

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from ftn_pytorch.__main__ import main
from ftn_pytorch.bench import figures, report, summary
from ftn_pytorch.bench.measure import Setting, measure_case
from ftn_pytorch.bench.plan import CASES, QUICK, Effort, turn
from ftn_pytorch.bench.worker import Unavailable, Worker

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


@pytest.mark.parametrize("ask", [lambda: summary.summarize([]), lambda: summary.ratio([], []),
                                 lambda: summary.difference([[1.0]], [])])
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


# ---- processes -------------------------------------------------------------------------------------------------------

WORKER = """
import sys
print("hello from a library", flush=True)
print(">> started 0 Fortran compiler, ftn_pytorch 1", flush=True)
for line in sys.stdin:
    command, *numbers = line.split()
    if command == "open" and "{path}" == "dying":
        sys.exit("out of luck")
    elif command == "open" and "{path}" == "absent":
        print(">> unavailable there is no such thing", flush=True)
    elif command == "open":
        print(">> opened 2000000 1000000", {error}, "1e-5", flush=True)
    elif command == "call":
        print(">> times", *[{nanoseconds}] * int(numbers[0]), flush=True)
    elif command == "create":
        print(">> times 3000000\\n>> times 1000", flush=True)
"""


class Pretended(Setting):
    """Workers that answer what they are told to."""

    def command(self, case, path):
        nanoseconds, error = {"python": (10000, 0), "script": (10100, 0), "direct": (5000, 1e-3)}.get(path, (1, 0))
        return [sys.executable, "-c", WORKER.format(path=path, nanoseconds=nanoseconds, error=error)]


@pytest.fixture
def setting():
    manifest = {
        "problems": {"mlp_32": {"stem": "mlp", "parameters": 5508, "flops": 1000}},
        "missing": {"mlp.pt2": "no compiler"},
        "refused": {},
    }
    core = max(os.sched_getaffinity(0))
    return Pretended(Path(), Path(), Path("/models"), core, manifest, {})


@pytest.fixture
def document(setting):
    """Results of one case on pretended workers, complete as in the file."""
    outcome = measure_case("mlp", [32], ["python", "script", "direct", "pt2"], setting, QUICK, lambda text: None)
    return {
        "schema": 1, "seconds": 60, "driver": "compiler", "models": setting.manifest["problems"],
        "versions": {"python": "3"}, "effort": {}, "uses_torchscript": False,
        "machine": {"processor": "P", "cores": 2, "core_used": 1, "memory_gib": 1, "system": "S", "load_before": 0,
                    "load_after": 1},
        **vars(outcome),
    }


def test_times_ratios_and_cold_start_come_from_the_answers(document):
    script = next(row for row in document["results"] if row["path"] == "script")
    assert script["call_us"]["median"] == 10.1
    assert script["ratio"] == pytest.approx(1.01)
    assert script["difference_us"] == pytest.approx(0.1)
    assert script["creation_us"]["median"] == 3000 and script["deletion_us"]["median"] == 1
    assert len(script["rounds_us"]) == QUICK.rounds
    cold = next(row for row in document["cold"] if row["path"] == "script")
    assert (cold["load_ms"], cold["first_call_ms"]) == (2, 1) and cold["start_ms"] > 0 and cold["peak_mib"] > 1


def test_a_wrong_result_is_not_measured_but_reported(document):
    assert [row["path"] for row in document["wrong"]] == ["direct"]
    assert "direct" not in {row["path"] for row in document["results"]}
    assert "WRONG RESULTS" in report.markdown(document)


def test_a_path_without_model_says_why(document):
    assert document["unavailable"] == [{"case": "mlp", "size": 32, "path": "pt2", "reason": "no compiler"}]
    assert "| .pt2, direct | mlp (32) | no compiler |" in report.markdown(document)


def test_a_worker_that_cannot_or_dies_is_one_line_of_the_result(setting):
    outcome = measure_case("mlp", [32], ["absent", "dying"], setting, QUICK, lambda text: None)
    assert [row["reason"] for row in outcome.unavailable] == [
        "there is no such thing", "the process ended with code 1: out of luck"]


def test_memory_of_a_worker_that_has_ended_is_no_failure():
    worker = Worker([sys.executable, "-c", WORKER.format(path="dying", nanoseconds=1, error=0)], {})
    assert worker.peak_bytes() > 0
    with pytest.raises(Unavailable, match="out of luck"):
        worker.open(1)
    assert worker.peak_bytes() == 0
    worker.close()


def test_a_program_that_says_nothing_is_no_worker():
    with pytest.raises(Unavailable, match="ended with code 3: it said nothing"):
        Worker([sys.executable, "-c", "raise SystemExit(3)"], {})


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
    others = [{**script, "path": path, "call_us": {"min": factor}}
              for path, factor in (("direct", 1), ("libtorch", 2), ("ftorch", 0.8))]
    assert ("mlp 32, direct: beside libtorch by hand", "yes", "0.500, at most 1") in report.aims(others[:2])
    assert ("mlp 32, direct: beside FTorch", "no", "1.250, at most 1") in report.aims(others)


def test_pictures_are_small_and_of_the_sizes_there_are(document, tmp_path):
    pytest.importorskip("matplotlib")
    more = [{**row, "size": 64} for row in document["results"]]
    trained = [{**row, "case": "train_step"} for row in document["results"]]
    files = figures.draw({**document, "results": document["results"] + more + trained}, tmp_path)
    assert [file.name for file in files] == ["mlp.png", "training.png", "cold_start.png"]
    for file in files:
        assert file.read_bytes().startswith(b"\x89PNG") and 5_000 < file.stat().st_size < 200_000


def test_every_path_has_a_style_of_its_own():
    styles = [figures.STYLES[path] for path in figures.PATHS]
    assert len({color for color, _ in styles}) == len({marker for _, marker in styles}) == len(styles)


# ---- the command -----------------------------------------------------------------------------------------------------


def test_command_reads_what_it_wrote(document, tmp_path, capsys):
    (tmp_path / "results.json").write_text(json.dumps({**document, "wrong": []}))
    assert main(["bench", "--from", str(tmp_path / "results.json"), "--output", str(tmp_path)]) == 0
    assert (tmp_path / "results.md").read_text() == capsys.readouterr().out[:-1]
    (tmp_path / "results.json").write_text(json.dumps(document))
    assert main(["bench", "--from", str(tmp_path / "results.json"), "--output", str(tmp_path)]) == 1


@pytest.mark.parametrize("arguments, said", [
    (["--build", "nowhere"], "cmake --build nowhere --target bench_driver"),
    (["--from", "nothing.json"], "nothing.json"),
])
def test_command_says_what_is_missing(arguments, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_command_refuses_files_of_another_kind(tmp_path, capsys):
    (tmp_path / "other.json").write_text('{"rows": []}')
    assert main(["bench", "--from", str(tmp_path / "other.json"), "--output", str(tmp_path)]) == 2
    assert "other.json" in capsys.readouterr().err


ROOT = Path(__file__).resolve().parents[2]


def test_cases_are_those_of_the_models(python):
    code = "import sys, json; sys.path.insert(0, sys.argv[1]); import models; print(json.dumps(" \
           "{name: case.sizes for name, case in models.CASES.items()}))"
    sizes = json.loads(python(code, ROOT / "benchmarks"))
    assert sizes == {name: list(case.sizes) for name, case in CASES.items()}
    assert all(case.quick in case.sizes for case in CASES.values())


def test_end_to_end_on_the_built_driver(build_dir, tmp_path):
    """Plain Python, the script path and the direct path of the smallest case, as make bench runs them."""
    driver = build_dir / "benchmarks" / "paths" / "bench_driver"
    if not driver.is_file():
        pytest.skip("this build has no benchmarks")
    command = [sys.executable, "-m", "ftn_pytorch", "bench", "--quick", "--case", "tiny", "--build", str(build_dir),
               "--output", str(tmp_path), "--path", "python", "--path", "script", "--path", "direct"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "results.json").read_text())
    measured = {row["path"] for row in document["results"]} | {row["path"] for row in document["unavailable"]}
    assert measured == {"python", "script", "direct"}
    assert {"python", "script"} <= {row["path"] for row in document["results"]}
