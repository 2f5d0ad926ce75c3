# SPDX-License-Identifier: MIT
"""FTN_PYTORCH_LOG: what is loaded and why, what crosses, what the cache does."""

import re

import pytest

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6} rank (\d+) thread \d+ (info|debug) (.*)")


def lines_of(text: str) -> list[str]:
    found = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(found), text
    return [match[3] for match in found]


def test_nothing_is_written_unasked(run, script) -> None:
    done = run(f"load={script}", "forward", "call=fails", "train")
    assert done.stderr == ""


def test_info_tells_what_is_loaded_and_why(run, script) -> None:
    lines = lines_of(run(f"load={script}", "forward", "forward", LOG="info").stderr)
    text = "\n".join(lines)
    assert "chosen by FTN_PYTORCH_PYTHON" in text
    assert f"{script} is a script" in text
    assert "NumPy arrays" in text
    assert f"loaded {script} as weather, backend script" in text
    assert "weather.ftn_pytorch_forward: arguments are separate" in text or "one list" in text
    assert lines[-1] == "the program ends"


def test_info_shows_shapes_of_the_first_call_both_ways(run, script) -> None:
    calls = [
        line for line in lines_of(run(f"load={script}", *["forward"] * 3, LOG="info").stderr) if " from Fortran" in line
    ]
    assert len(calls) == 1
    assert "real(real32)(3,2); real(real32)(3,2)" in calls[0]
    assert "(float32[2, 3]) -> float32[2, 3]" in calls[0]


def test_debug_tells_hits_and_misses_of_each_call(run, script) -> None:
    done = run(f"load={script}", *["forward"] * 4, "copied", LOG="debug")
    calls = [line for line in lines_of(done.stderr) if "cache:" in line]
    # the first two calls are checked with arrays of their own, the third makes the one that is kept
    counts = [re.search(r"cache: (\d) hits, (\d) misses", line).groups() for line in calls]
    assert counts == [("0", "1"), ("0", "1"), ("0", "1"), ("1", "0"), ("0", "1")]


def test_variables_that_nothing_reads_are_told(run, script) -> None:
    lines = lines_of(run(f"load={script}", LOG="info", PROFLE="1").stderr)
    told = [line for line in lines if "nothing reads" in line]
    assert len(told) == 1 and "FTN_PYTORCH_PROFLE is set" in told[0] and "FTN_PYTORCH_PROFILE may be meant" in told[0]


def test_files_of_the_state_are_told(run, script) -> None:
    script.write_text(script.read_text() + "\nkept = numpy.ones(3)\n")
    text = run(f"load={script}", "save=state", "restore=nowhere", LOG="info").stderr
    assert re.search(r"info save of weather in [\d.]+ ms, file state$", text, re.MULTILINE)
    assert "file nowhere: FTN_PYTORCH_ERR_NO_CHECKPOINT: " in text


@pytest.mark.parametrize("level", ["info", "debug"])
def test_failures_are_told_with_status_and_reason(run, script, level: str) -> None:
    text = run(f"load={script}", "call=fails", "call=fails", LOG=level).stderr
    assert text.count("FTN_PYTORCH_ERR_PYTHON: fails of weather: ValueError: no such weather") == 2


def test_a_file_that_cannot_be_loaded_is_told(run, tmp_path) -> None:
    assert "could not load missing.py: FTN_PYTORCH_ERR_FILE" in run("load=missing.py", LOG="info").stderr


def test_lines_go_to_the_file_of_each_rank(run, script, tmp_path) -> None:
    ranks = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}
    done = run(f"load={script}", LOG="info", LOG_FILE=tmp_path / "log-%r.txt", environment=ranks)
    assert done.stderr == ""
    text = (tmp_path / "log-3.txt").read_text()
    assert {LINE.fullmatch(line)[1] for line in text.splitlines()} == {"3"}


def test_the_direct_path_is_told(run, saved_model) -> None:
    text = run(f"direct={saved_model}", "forward", LOG="info").stderr
    assert f"loaded {saved_model} as net, backend direct" in text
    assert "net.ftn_pytorch_forward in" in text
    assert "Python 3" not in text


def test_reload_and_end_of_a_module_are_told(run, script) -> None:
    lines = lines_of(run(f"load={script}", "reload", "free", LOG="info").stderr)
    assert "freed weather" in lines
