# SPDX-License-Identifier: MIT
"""Processes that take turns, and what every benchmark has in common."""

import importlib
import sys

import pytest
from harness import document, machine
from harness.turns import QUICK, pivoted, rows, take_turns
from harness.worker import Unavailable, workers
from run import HERE, NAMES, main

SERVER = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from harness import serve
now = 0
def taking(nanoseconds):
    global now
    now += nanoseconds
serve.clock = lambda: now
ways = {{"slow": serve.repeated(lambda: taking(2_000_000)), "fast": serve.repeated(lambda: taking(1_000_000))}}
serve.serve({{**ways, "broken": lambda calls: 1 / 0}})
"""


def test_another_way_begins_in_each_round():
    order = []
    found, failures = take_turns({name: lambda name=name: order.append(name) for name in "abc"}, 4)
    assert "".join(order) == "abcbcacababc"
    assert found == {name: [None] * 4 for name in "abc"} and failures == {}


def test_a_way_that_fails_has_its_reason_and_the_others_go_on():
    def fail():
        raise Unavailable("it is broken")

    assert take_turns({"a": fail, "b": lambda: 1}, 2) == ({"b": [1, 1]}, {"a": "it is broken"})


def test_a_process_in_python_answers_with_times():
    with workers({"one": [sys.executable, "-c", SERVER]}, {}) as started:
        worker = started["one"]
        found = rows({"case": "played"}, {way: (worker, way) for way in ("slow", "fast")}, QUICK)
        with pytest.raises(RuntimeError, match="played, broken: .*ZeroDivisionError"):
            rows({"case": "played"}, {"broken": (worker, "broken")}, QUICK)
    assert [row["way"] for row in found] == ["slow", "fast"]
    times = pivoted(found, ["case"])["played",]
    assert (times["slow"]["min"], times["fast"]["min"]) == (2000, 1000)


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_has_one_command(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"run.py {name}" in said and "--from FILE" in said and "--rounds" in said


def test_a_name_that_is_no_benchmark_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["nothing"])
    assert ended.value.code == 2 and "halo" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, program",
    [
        ("halo", "bench_halo"),
        ("scale", "bench_start"),
        ("call_overhead", "call_overhead"),
    ],
)
def test_a_benchmark_says_what_builds_its_program(name, program, tmp_path, capsys):
    assert main([name, "--build", str(tmp_path), "--output", str(tmp_path)]) == 2
    assert f"--target {program}" in capsys.readouterr().err


def test_without_a_gpu_nothing_is_measured(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    program = tmp_path / "benchmarks" / "gpu" / "bench_gpu"
    program.parent.mkdir(parents=True)
    program.touch()
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    assert main(["gpu", "--build", str(tmp_path), "--output", str(tmp_path)]) == 2
    assert "torch has no GPU here" in capsys.readouterr().err


def test_a_server_has_an_address(tmp_path, capsys):
    assert main(["server", "--output", str(tmp_path)]) == 2
    assert "Give its address" in capsys.readouterr().err


PUBLISHED = sorted(file.relative_to(HERE) for file in HERE.glob("*/*.json") if file.name != "counts.json")


@pytest.mark.parametrize("file", PUBLISHED, ids=str)
def test_published_results_have_their_table(file, tmp_path, capsys):
    source = HERE / file
    benchmark = file.parent.name
    words = [benchmark, "--from", str(source), "--output", str(tmp_path), "--name", source.stem]
    assert main(words) == 0
    drawn, page = (tmp_path / f"{source.stem}.md").read_text(), source.with_suffix(".md")
    assert all(f"| {row['case']} | {row['size']} | " in drawn for row in document.read(source)["results"])
    assert not page.exists() or drawn == page.read_text()
    assert (tmp_path / source.name).read_text() == source.read_text()


def test_where_it_was_measured_is_complete_at_the_end():
    with machine.described() as found:
        assert found["machine"]["cores"] >= 1
    assert found["machine"]["load_after"] >= 0 and "torch" in found["versions"]
    assert all(hasattr(importlib.import_module(f"{name}.benchmark"), "markdown") for name in NAMES)
