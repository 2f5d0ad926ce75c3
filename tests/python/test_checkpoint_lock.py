# SPDX-License-Identifier: MIT
"""Two writers of one checkpoint: ranks, processes, modules of one process, and file systems without flock."""

import contextlib
import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ftn_pytorch
from ftn_pytorch.checkpoint import Checkpoint, folder
from ftn_pytorch.system import launcher, process


@pytest.fixture
def checkpoint():
    return Checkpoint(values={"step": 0})


@pytest.fixture
def rank(monkeypatch):
    """rank(r): this process is rank r of two from now on."""

    def be(number, job="job.1"):
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(number))
        monkeypatch.setenv("PMIX_NAMESPACE", job)

    return be


@pytest.fixture
def other(tmp_path):
    """other(code): a process that runs code with Checkpoint imported, prints "ready" and waits to be ended."""
    with contextlib.ExitStack() as stack:

        def start(code):
            text = f"from ftn_pytorch import Checkpoint\n{code}\nprint('ready', flush=True)\ninput()"
            environment = {**os.environ, "PYTHONPATH": str(Path(ftn_pytorch.__file__).parents[1])}
            made = subprocess.Popen(
                [sys.executable, "-c", text], cwd=tmp_path, env=environment, stdin=-1, stdout=-1, text=True
            )
            stack.callback(made.wait)
            stack.callback(made.kill)
            assert made.stdout.readline() == "ready\n"
            return made

        yield start


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def of_steps(*steps):
    return [folder.name_of(step) for step in steps]


def test_the_rank_goes_into_names(tmp_path, checkpoint, rank):
    for number in (0, 1):
        rank(number)
        assert checkpoint.save(str(tmp_path / "state.%r")).endswith(f"state.{number}")
        checkpoint.write(str(tmp_path / "rank%r"))
        assert checkpoint.restore(str(tmp_path / "rank%r")) == 1
    assert names(tmp_path) == ["rank0", "rank1", "state.0", "state.1"]


def test_a_rank_that_goes_on_from_the_file_of_another_is_told(tmp_path, checkpoint, rank):
    rank(0)
    path = checkpoint.save(str(tmp_path / "state"))
    checkpoint.restore(path)
    rank(1)
    with pytest.warns(process.FtnPytorchWarning, match="^rank 1: .*state was written by rank 0: random states"):
        checkpoint.restore(path)


def test_two_ranks_that_save_one_file_one_after_the_other_are_told(tmp_path, fails, checkpoint, rank):
    path = str(tmp_path / "state")
    rank(0)
    checkpoint.save(path)
    checkpoint.save(path)
    rank(1)
    with fails("LOCKED", "was written by rank 0 of this job", "this is rank 1", "%r"):
        checkpoint.save(path)
    rank(1, job="job.2")
    checkpoint.save(path)


@pytest.mark.parametrize("names_of_job", [{}, {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}])
def test_ranks_know_their_job(rank, monkeypatch, names_of_job):
    rank(0)
    monkeypatch.delenv("PMIX_NAMESPACE")
    for name in ("OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names_of_job.items():
        monkeypatch.setenv(name, value)
    assert launcher.job().endswith("7.0" if names_of_job else str(os.getppid()))


def test_a_second_process_is_refused_while_the_first_lives(tmp_path, fails, checkpoint, other):
    writer = other("c = Checkpoint(v={}); c.write('steps')")
    with fails("LOCKED", f"process {writer.pid}", "steps is being written by", "%r"):
        checkpoint.write(str(tmp_path / "steps"))
    assert names(tmp_path / "steps") == [".lock", *of_steps(1)]
    writer.kill()
    writer.wait()
    checkpoint.write(str(tmp_path / "steps"))
    assert names(tmp_path / "steps") == [".lock", *of_steps(1, 2)]


def test_two_processes_that_save_one_file_at_once_are_told(tmp_path, fails, checkpoint, other):
    writer = other("from ftn_pytorch.system.file_lock import Lock; held = Lock('.state.lock', 'state')")
    with fails("LOCKED", f"process {writer.pid}", str(tmp_path / "state")):
        checkpoint.save(str(tmp_path / "state"))
    writer.communicate("\n")
    checkpoint.save(str(tmp_path / "state"))
    assert names(tmp_path) == ["state"]


def test_a_process_that_ends_leaves_no_lock_file(tmp_path, other):
    writer = other("c = Checkpoint(v={}); c.write('steps')")
    writer.communicate("\n")
    assert names(tmp_path / "steps") == of_steps(1)


def test_two_owners_in_one_process_are_told_until_one_is_gone(tmp_path, fails, checkpoint):
    first = Checkpoint(values={})
    first.write(str(tmp_path))
    with fails("LOCKED", "this process itself"):
        checkpoint.write(str(tmp_path))
    del first
    checkpoint.write(str(tmp_path))


def test_a_forked_child_neither_has_nor_keeps_the_lock(tmp_path, checkpoint, other):
    code = """
import os, signal
c = Checkpoint(v={})
c.write('steps')
read, write = os.pipe()
child = os.fork()
if child == 0:
    try:
        c.write('steps')
    except Exception as failure:
        os.write(write, failure.status.encode())
    signal.pause()
assert os.read(read, 100) == b"LOCKED"
open("child", "w").write(str(child))
"""
    writer = other(code)
    child = int((tmp_path / "child").read_text())
    try:
        writer.kill()
        writer.wait()
        checkpoint.write(str(tmp_path / "steps"))
    finally:
        os.kill(child, 9)


def test_a_folder_that_was_replaced_is_locked_anew(tmp_path, fails, checkpoint):
    place = tmp_path / "steps"
    checkpoint.write(str(place))
    place.rename(tmp_path / "moved")
    checkpoint.write(str(place))
    with fails("LOCKED"):
        Checkpoint(values={}).write(str(place))


# ---- file systems without flock


@pytest.fixture
def without_flock(monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_without_flock_there_is_a_warning_and_no_lock(tmp_path, checkpoint, without_flock):
    first = Checkpoint(values={})
    with pytest.warns(process.FtnPytorchWarning, match=f"{tmp_path} is on a file system without flock") as told:
        first.write(str(tmp_path))
        checkpoint.write(str(tmp_path))
        checkpoint.save(str(tmp_path / "state"))
    assert len(told) == 1
    assert names(tmp_path) == [*of_steps(1, 2), "state"]


def test_without_flock_what_others_have_begun_stays(tmp_path, checkpoint, without_flock):
    parts = [".state.4711.part", f".{folder.name_of(1)}.4711.part"]
    for part in parts:
        (tmp_path / part).write_text("begun")
    with pytest.warns(process.FtnPytorchWarning):
        checkpoint.save(str(tmp_path / "state"))
    checkpoint.write(str(tmp_path))
    assert set(parts) < set(names(tmp_path))


def test_a_lock_that_cannot_be_tried_is_a_failure_and_stays(tmp_path, checkpoint, fails, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / ".state.lock").write_text("of another")
    monkeypatch.setattr(fcntl, "flock", refuse)
    with fails("FILE", "state cannot be written", os.strerror(errno.EIO)):
        checkpoint.save(str(tmp_path / "state"))
    assert names(tmp_path) == [".state.lock"]


def test_a_lock_without_a_legible_owner_is_told_all_the_same(tmp_path, fails, checkpoint, other):
    other("from ftn_pytorch.system.file_lock import Lock; held = Lock('.state.lock', 'state')")
    (tmp_path / ".state.lock").write_text("???")
    with fails("LOCKED", "another process", ".state.lock"):
        checkpoint.save(str(tmp_path / "state"))
