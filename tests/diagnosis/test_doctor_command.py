# SPDX-License-Identifier: MIT
"""The doctor, from the command line and from inside a program."""

import json
import sys
from pathlib import Path


def test_program_is_told_what_is_found(run) -> None:
    text = run("diagnose").stdout
    assert text.endswith("diagnose FTN_PYTORCH_OK 0\n")
    lines = dict(line[6:].split(": ", 1) for line in text.splitlines()[:-1])
    assert lines["chosen by"] == "FTN_PYTORCH_PYTHON"
    assert sys.executable in lines["python"]
    assert "as this is" in lines["abi"]
    assert lines["floating point"].startswith("default")
    assert "import took" in lines["numpy"]
    assert "direct path" in lines and "access to tensors" in lines


def test_status_tells_what_is_wrong(run, tmp_path) -> None:
    for name in ("numpy", "torch"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('it is broken')\n")
    text = run("diagnose", environment={"PYTHONPATH": str(tmp_path)}).stdout
    assert "wrong numpy: " in text and "it is broken" in text
    assert "diagnose FTN_PYTORCH_ERR_IMPORT 0\nnumpy: " in text


def test_status_tells_that_there_is_no_python(run) -> None:
    assert (
        "diagnose FTN_PYTORCH_ERR_INTERPRETER 0" in run("diagnose", environment={"FTN_PYTORCH_PYTHON": "/none"}).stdout
    )


def test_command_ends_with_one_if_something_is_wrong(command, tmp_path) -> None:
    assert "\nok    numpy: " in command("doctor").stdout
    for name in ("numpy", "torch"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('it is broken')\n")
    package = f"{tmp_path}:{Path(__file__).resolve().parents[2] / 'python'}"
    done = command("doctor", "--json", environment={"PYTHONPATH": package}, code=1, cold=True)
    report = json.loads(done.stdout)
    assert report["fine"] is False
    assert {"IMPORT"} == {finding["status"] for finding in report["findings"] if finding["verdict"] == "wrong"}


def test_a_program_that_is_none_is_a_wrong_argument(command, tmp_path) -> None:
    (tmp_path / "launcher").write_text("#!/bin/sh\n")
    for name, text in (("nowhere", "ERR_FILE: nowhere cannot be read"), ("launcher", "ERR_ARGUMENT: launcher is no")):
        done = command("doctor", name, code=2, cwd=tmp_path)
        assert text in done.stderr and not done.stdout


def test_library_of_another_python_is_wrong(command, tmp_path) -> None:
    library = tmp_path / "lib" / "libftn_pytorch.so"
    library.parent.mkdir()
    library.touch()
    library.with_name("libftn_pytorch_python3.4.so").touch()
    done = command("doctor", environment={"ftn_pytorch_ROOT": str(tmp_path)}, code=1)
    assert "wrong abi: the library was built for Python 3.4" in done.stdout
    assert "-DPython_EXECUTABLE=" in done.stdout


def test_built_library_fits(command, build_dir) -> None:
    done = command("doctor", "--json", environment={"ftn_pytorch_ROOT": str(build_dir)})
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert findings["abi"]["verdict"] == "ok"
    assert str(build_dir) in findings["ftn_pytorch"]["found"]
