# SPDX-License-Identifier: MIT
"""``ftn_pytorch doctor --test``: one command that does what programs do, and says PASSED or what failed."""

import os
import re
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python"


def verdicts(text: str) -> dict[str, str]:
    lines = re.findall(r"^(passed|failed|not tested) *([\w ]+):", text, re.M)
    return {name: verdict for verdict, name in lines}


def test_a_built_library_passes(command, build_dir) -> None:
    done = command("doctor", "--test", environment={"ftn_pytorch_ROOT": str(build_dir)}, cold=True)
    found = verdicts(done.stdout)
    assert found == {
        "doctor": "passed",
        "script": "passed",
        "recorded step": "passed",
        "saved model": "passed",
        "Fortran program": "not tested",  # a build tree is no installed copy
    }
    assert done.stdout.splitlines()[-1] == "PASSED (not tested: Fortran program)"
    assert "the losses of plain Python, bit for bit" in done.stdout


@pytest.mark.slow
def test_without_torch_numpy_is_tested(command, build_dir, tmp_path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('there is none')\n")
    environment = {"ftn_pytorch_ROOT": str(build_dir), "PYTHONPATH": f"{tmp_path}:{PACKAGE}"}
    done = command("doctor", "--test", environment=environment, code=1, cold=True)
    found = verdicts(done.stdout)
    assert (found["script"], found["recorded step"], found["saved model"]) == ("passed", "not tested", "not tested")
    assert "200 steps of NumPy" in done.stdout
    assert done.stdout.splitlines()[-1] == "FAILED: doctor"  # torch is installed, and cannot be imported


def test_a_library_that_cannot_be_opened_fails(command, tmp_path) -> None:
    folder = tmp_path / "lib"
    folder.mkdir()
    for name in ("libftn_pytorch.so", f"libftn_pytorch_python3.{sys.version_info.minor}.so"):
        (folder / name).touch()
    done = command("doctor", "--test", environment={"ftn_pytorch_ROOT": str(tmp_path)}, code=1, cold=True)
    assert re.search(r"^failed +script: .*libftn_pytorch.so: file too short", done.stdout, re.M)
    assert done.stdout.splitlines()[-1].startswith("FAILED: script, ")


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        ("torch.Tensor.backward = lambda self: None", "the loss went from"),
        pytest.param(
            "import os; torch.Tensor.backward = lambda self: os._exit(3)", "exit code 3", marks=pytest.mark.slow
        ),
    ],
    ids=["wrong", "ends"],
)
def test_a_torch_that_is_wrong_fails(broken: str, text: str, command, build_dir, tmp_path) -> None:
    """A process that ends, too, is a failed test, with the exit code."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif 'ftn_pytorch.commands.self_test' in sys.orig_argv:\n    import torch\n    " + broken + "\n"
    )
    path = os.pathsep.join([str(tmp_path), str(PACKAGE)])
    environment = {"ftn_pytorch_ROOT": str(build_dir), "PYTHONPATH": path}
    done = command("doctor", "--test", environment=environment, code=1, cold=True)
    (line,) = (line for line in done.stdout.splitlines() if re.match(r"failed +script: ", line))
    assert text in line
    assert done.stdout.splitlines()[-1].startswith("FAILED: script")


@pytest.mark.parametrize("other", ["--json", "./model"])
def test_it_has_no_other_form(other: str, command) -> None:
    assert "doctor --test takes neither --json nor a program" in command("doctor", "--test", other, code=2).stderr
