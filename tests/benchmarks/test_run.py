# SPDX-License-Identifier: MIT
"""benchmarks/run.py: results written, read again and drawn; and a run on the built driver."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import document as files
from paths.plan import CASES
from run import main

ROOT = Path(__file__).resolve().parents[2]


def test_results_are_written_and_read_without_measuring(document, tmp_path, capsys):
    files.write({**document, "wrong": []}, tmp_path / "results.json")
    assert main(["paths", "--from", str(tmp_path / "results.json"), "--output", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "paths.md").read_text() == capsys.readouterr().out[:-1]
    assert (tmp_path / "again" / "paths.json").read_text() == (tmp_path / "results.json").read_text()


def test_a_part_is_called_one_and_has_the_name_that_is_asked_for(document, tmp_path, capsys):
    files.write({**document, "wrong": [], "part": "--case mlp"}, tmp_path / "results.json")
    assert main(["paths", "--from", str(tmp_path / "results.json"), "--output", str(tmp_path), "--name", "mlp"]) == 0
    text = (tmp_path / "mlp.md").read_text()
    assert text.startswith("# Results of a part") and "`python benchmarks/run.py paths --case mlp`" in text
    assert (tmp_path / "mlp.json").is_file() and not (tmp_path / "paths.md").exists()


def test_what_a_run_that_was_ended_has_left_can_be_read(document, tmp_path, capsys):
    machine = {name: value for name, value in document["machine"].items() if name != "load_after"}
    files.write({**document, "machine": machine, "wrong": []}, tmp_path / "results.json")
    assert main(["paths", "--from", str(tmp_path / "results.json"), "--output", str(tmp_path)]) == 0
    assert "Load before and after: 0, not known, as the run was ended." in (tmp_path / "paths.md").read_text()


def test_a_wrong_result_is_the_exit_code(document, tmp_path):
    files.write(document, tmp_path / "results.json")
    assert main(["paths", "--from", str(tmp_path / "results.json"), "--output", str(tmp_path)]) == 1


def test_a_file_has_a_line_for_each_row(document, tmp_path):
    files.write(document, tmp_path / "results.json")
    lines = (tmp_path / "results.json").read_text().splitlines()
    assert sum('"call_us"' in line for line in lines) == len(document["results"])
    script = next(row for row in files.read(tmp_path / "results.json")["results"] if row["path"] == "script")
    assert script["call_us"]["median"] == 10.1


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--build", "nowhere"], "cmake --build nowhere --target bench_driver"),
        (["--from", "nothing.json"], "nothing.json"),
    ],
)
def test_what_is_missing_is_said(arguments, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["paths", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("text", ['{"rows": []}', "[1]", "not JSON"])
def test_a_file_of_another_kind_is_refused(text, tmp_path, capsys):
    (tmp_path / "other.json").write_text(text)
    assert main(["paths", "--from", str(tmp_path / "other.json"), "--output", str(tmp_path)]) == 2
    assert "Error" in capsys.readouterr().err


def test_a_quick_run_measures_a_size_of_each_case():
    assert all(case.quick in case.sizes for case in CASES.values())


@pytest.mark.slow
def test_end_to_end_on_the_built_driver(build_dir, tmp_path):
    """Plain Python, the script path and the direct path of the smallest case, as make bench runs them."""
    found = run_on(build_dir, tmp_path, "--path", "python", "--path", "script", "--path", "direct")
    measured = {row["path"] for row in found["results"]} | {row["path"] for row in found["unavailable"]}
    assert measured == {"python", "script", "direct"}
    assert {"python", "script"} <= {row["path"] for row in found["results"]}
    assert {row["path"] for row in found["cold"]} == {row["path"] for row in found["results"]}
    (sizes,) = found["files"]
    assert sizes["model"] == "tiny_3" and sizes["pt"] > 0


@pytest.mark.slow
def test_starts_alone_on_the_built_driver(build_dir, tmp_path):
    """A saved recording starts without Python's start, and its size is told; where it cannot be, that is said."""
    found = run_on(build_dir, tmp_path, "--starts", "1", "--path", "script", "--path", "recording")
    assert found["results"] == [] and found["part"] == "--case tiny --path script --path recording --quick --starts 1"
    assert "script" in {row["path"] for row in found["cold"]}
    told = {row["path"] for row in found["cold"]} | {row["path"] for row in found["unavailable"]}
    assert told == {"script", "recording"}
    if "recording" in {row["path"] for row in found["cold"]}:
        assert found["files"][0]["ftr"] > 0


def run_on(build_dir, output, *arguments):
    """The smallest case on a built driver, and what was found."""
    if not (build_dir / "benchmarks" / "paths" / "bench_driver").is_file():
        pytest.skip("this build has no benchmarks")
    command = [sys.executable, "benchmarks/run.py", "paths", "--quick", "--case", "tiny", *arguments]
    command += ["--build", str(build_dir), "--output", str(output)]
    done = subprocess.run(
        command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return files.read(output / "paths.json")
