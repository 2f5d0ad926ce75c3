# SPDX-License-Identifier: MIT
"""Files that saved models write: the same rules on the direct path and in Python."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from ftn_pytorch.system.file_lock import Lock

torch = pytest.importorskip("torch")

LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "MV2_", "SLURM_")


@pytest.fixture(params=["direct", "load"])
def run(request, build_dir, tmp_path):
    """run(action, ...): what tests/diagnosis/program.c prints with net.pt loaded, directly or through Python."""
    if request.param == "direct" and not next(build_dir.glob("lib*/libftn_pytorch_direct.so"), None):
        pytest.skip("this build has no direct path")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(2, 1)).save(tmp_path / "net.pt")

    def run(*actions, **environment) -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
        program = build_dir / "tests" / "diagnosis" / "diagnosis_program"
        done = subprocess.run(
            [program, f"{request.param}=net.pt", *actions],
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
            cwd=tmp_path,
            env={**inherited, "FTN_PYTORCH_PYTHON": sys.executable, **environment},
        )
        return done.stdout

    return run


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


@pytest.mark.parametrize("rank", ["0", "3"])
def test_the_rank_goes_into_names(run, tmp_path, rank):
    printed = run("save=%r/of-%r.pt", "restore=%r/of-%r.pt", OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK=rank)
    assert "save FTN_PYTORCH_ERR_FILE" in printed and "restore FTN_PYTORCH_ERR_NO_CHECKPOINT" in printed
    assert printed.count(f"{tmp_path}/{rank}/of-{rank}.pt") == 2
    (tmp_path / rank).mkdir()
    printed = run("save=%r/of-%r.pt", "restore=%r/of-%r.pt", OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK=rank)
    assert "save FTN_PYTORCH_OK" in printed and "restore FTN_PYTORCH_OK" in printed
    assert names(tmp_path / rank) == {f"of-{rank}.pt"}


def test_a_file_that_another_process_is_writing_is_refused(run, tmp_path):
    (tmp_path / "state.pt").write_text("whole")
    lock = Lock(str(tmp_path / ".state.pt.lock"), "state.pt")
    printed = run("save=state.pt")
    assert "save FTN_PYTORCH_ERR_LOCKED" in printed
    assert str(tmp_path / "state.pt") in printed and "write %r for the rank" in printed
    assert (tmp_path / "state.pt").read_text() == "whole"
    lock.release()
    assert "save FTN_PYTORCH_OK" in run("save=state.pt")
    assert names(tmp_path) == {"net.pt", "state.pt"}


def test_ranks_that_save_one_name_are_told(run, tmp_path):
    """One after the other, so that they never meet at the lock."""
    job = {"PMIX_NAMESPACE": 'jöb "7"', "OMPI_COMM_WORLD_SIZE": "2"}
    for _ in range(2):
        assert "save FTN_PYTORCH_OK" in run("save=state.pt", OMPI_COMM_WORLD_RANK="0", **job)
    before = (tmp_path / "state.pt").read_bytes()
    printed = run("save=state.pt", "save=of-%r.pt", OMPI_COMM_WORLD_RANK="1", **job)
    assert "save FTN_PYTORCH_ERR_LOCKED" in printed and "save FTN_PYTORCH_OK" in printed
    assert f"{tmp_path}/state.pt was written by rank 0 of this job, and this is rank 1" in printed
    assert (tmp_path / "state.pt").read_bytes() == before
    torch.jit.load(tmp_path / "state.pt")
    job["PMIX_NAMESPACE"] = "job 8"
    assert "restore FTN_PYTORCH_OK" in run("restore=state.pt", "save=state.pt", OMPI_COMM_WORLD_RANK="1", **job)
    assert (tmp_path / "state.pt").read_bytes() != before


def test_a_script_is_not_replaced(run, tmp_path):
    (tmp_path / "closure.py").write_text("n = 1\n")
    printed = run("save=closure.py")
    assert "save FTN_PYTORCH_ERR_FILE" in printed
    assert f"{tmp_path / 'closure.py'} cannot be written: there is a script; name another file" in printed
    assert (tmp_path / "closure.py").read_text() == "n = 1\n"
    assert names(tmp_path) == {"net.pt", "closure.py"}


def test_what_killed_writers_have_left_is_removed(run, tmp_path):
    left = (".state.pt.4711.part", ".state.pt.4711~hook.part", ".state.pt.4711.part.pt")
    for name in (*left, ".other.pt.4711.part"):
        (tmp_path / name).write_text("cut off")
    assert "save FTN_PYTORCH_OK" in run("save=state.pt")
    assert names(tmp_path) == {"net.pt", "state.pt", ".other.pt.4711.part"}
