# SPDX-License-Identifier: MIT
"""What the environment of a program does to it: another project's Python that happens to be active."""

import pytest


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_unrelated_environment_does_not_stop_the_program(run, script, tmp_path, variable) -> None:
    active = {"FTN_PYTORCH_PYTHON": "", "VIRTUAL_ENV": "", "CONDA_PREFIX": "", variable: str(tmp_path / "other")}
    done = run("warnings", f"load={script}", "forward", "diagnose", environment=active)
    assert "forward FTN_PYTORCH_OK 12" in done.stdout
    assert "chosen by: the Python this library was built with" in done.stdout
    assert done.stderr.count("warning: ") == 1
    assert f'{variable} is "{tmp_path}/other"' in done.stderr
    assert "FTN_PYTORCH_PYTHON chooses one without this warning" in done.stderr


@pytest.mark.parametrize("variable", ["LOG_FILE", "PROFILE", "TRACE"])
def test_a_file_that_takes_nothing_is_told_once(run, script, variable) -> None:
    wanted = {variable: "/dev/full"} | ({"LOG": "debug"} if variable == "LOG_FILE" else {})
    done = run("warnings", f"load={script}", "forward", "forward", **wanted)
    assert done.stdout.count("forward FTN_PYTORCH_OK 12") == 2
    assert done.stderr.count("warning: ") == done.stderr.count(f"FTN_PYTORCH_{variable}: ") == 1


def test_a_recording_that_cannot_go_on_is_told_once(run, script, tmp_path) -> None:
    actions = ("warnings", f"load={script}", "forward", "forward", "forward")
    # The script takes the place of its second call before that is recorded.
    text = script.read_text()
    script.write_text(f"import os\nos.makedirs({str(tmp_path / 'calls' / 'call-0002')!r}, exist_ok=True)\n{text}")
    done = run(*actions, RECORD=tmp_path / "calls")
    assert done.stdout.count("forward FTN_PYTORCH_OK 12") == 3
    assert done.stderr.count("warning: ") == 1
    assert "FTN_PYTORCH_RECORD: nothing more is recorded: " in done.stderr
    (tmp_path / "other" / "module-1").mkdir(parents=True)
    done = run(*actions, RECORD=tmp_path / "other")
    assert "load FTN_PYTORCH_OK" in done.stdout and done.stdout.count("forward FTN_PYTORCH_OK 12") == 3
    assert done.stderr.count("warning: ") == 1


@pytest.mark.parametrize("variable", ["LOG_FILE", "PROFILE", "TRACE", "RECORD"])
def test_a_place_that_cannot_be_written_is_told_once(run, script, variable) -> None:
    wanted = {variable: script / "none" / "file"} | ({"LOG": "debug"} if variable == "LOG_FILE" else {})
    done = run("warnings", f"load={script}", "forward", **wanted)
    assert "forward FTN_PYTORCH_OK 12" in done.stdout
    assert done.stderr.count("warning: ") == done.stderr.count(f"FTN_PYTORCH_{variable}: ") == 1
    assert str(script) in done.stderr
