# SPDX-License-Identifier: MIT
"""Two writers of one checkpoint: ranks, processes, modules of one process, and file systems without flock."""

import contextlib
import errno
import fcntl
import gc
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ftn_pytorch
from ftn_pytorch.checkpoint import Checkpoint, file, folder
from ftn_pytorch.kit import Log
from ftn_pytorch.ranks import communicator
from ftn_pytorch.system import launcher, process
from played_mpi import FIRST_OF_TWO

BEFORE = str(Path(__file__).parent / "recordings_of_before" / "0.2.0.ftr")
SCALED = """
import torch
weight = torch.ones(3)
def ftn_pytorch_forward(x):
    return weight * x
"""
WRITERS = [
    *(("script", "script"), ("recording", "recording"), ("script", "recording"), ("recording", "script")),
    *(("checkpoint", "recording"), ("script", "checkpoint")),
]


@pytest.fixture
def checkpoint():
    return Checkpoint(values={"step": 0})


@pytest.fixture
def rank(monkeypatch):
    """rank(r): this process is rank r of two from now on. ``names``: what the launcher tells the name of its job by."""

    def be(number, job="job.1", names=("PMIX_NAMESPACE",)):
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(number))
        for each in itertools.chain(*launcher._JOBS):
            monkeypatch.delenv(each, raising=False)
        for each in names:
            monkeypatch.setenv(each, job)

    return be


@pytest.fixture
def writers(write, extension):
    """What writes the state of a saved recording into a file: the script, and, without it, the plug-in."""
    import torch

    from ftn_pytorch.opening import open_runner

    runner = open_runner(write("scaled.py", SCALED), {"record": True}, {})
    forward = runner.bind("ftn_pytorch_forward", 0)[0]
    for step in range(8):
        forward(torch.full((3,), float(step)))
    path = write("scaled.ftr", "")
    runner.save(path)
    saved = ftn_pytorch.load_recording(path)
    return {"script": runner.save, "recording": saved.save_recording, "checkpoint": saved.save}


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


def test_a_recording_tells_its_rank_in_the_communicator_that_a_script_was_loaded_with(tmp_path, extension, mpi, rank):
    """Of two ranks, in a job where it is the other one."""
    ours, saved = communicator.opened(FIRST_OF_TWO), ftn_pytorch.load_recording(BEFORE)
    rank(1)
    paths = [saved.save(str(tmp_path / "state%r")), saved.save_recording(str(tmp_path / "saved%r.ftr"))]
    assert [os.path.basename(each) for each in paths] == ["state0", "saved0.ftr"]
    assert all(file.description(each)["rank"] == 0 for each in paths)
    saved.restore(paths[0])
    del ours
    gc.collect()
    with pytest.warns(process.FtnPytorchWarning, match="^rank 1: .*state0 was written by rank 0: random states"):
        saved.restore(paths[0])


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


@pytest.mark.parametrize("names_of_job", [(), *launcher._JOBS])
def test_ranks_know_their_job(rank, names_of_job):
    rank(0, "7", names_of_job)
    assert launcher.job().endswith(".7" * len(names_of_job) or str(os.getppid()))


@pytest.mark.parametrize("first, second", WRITERS)
def test_two_ranks_that_save_a_recording_are_told(tmp_path, fails, writers, rank, first, second):
    path = str(tmp_path / "saved.ftr")
    rank(0)
    writers[first](path)
    writers[first](path)
    before = Path(path).read_bytes()
    rank(1)
    with fails("LOCKED", f"{path} was written by rank 0 of this job", "this is rank 1", "%r"):
        writers[second](path)
    assert Path(path).read_bytes() == before
    writers[second](str(tmp_path / "saved%r.ftr"))
    rank(1, job="job.2")
    writers[second](path)
    assert Path(path).read_bytes() != before
    assert names(tmp_path) == ["saved.ftr", "saved1.ftr", "scaled.ftr", "scaled.py"]


@pytest.mark.parametrize(
    "names_of_job, job", [*((each, "7") for each in ((), *launcher._JOBS)), (("PMIX_NAMESPACE",), 'jöb\udce9 "7"\\n')]
)
@pytest.mark.parametrize("first, second", [("script", "recording"), ("recording", "script")])
def test_script_and_recording_know_one_job(tmp_path, fails, writers, rank, first, second, names_of_job, job):
    path = str(tmp_path / "saved.ftr")
    rank(0, job, names_of_job)
    writers[first](path)
    rank(1, job, names_of_job)
    with fails("LOCKED", "was written by rank 0 of this job"):
        writers[second](path)


def test_a_recording_of_before_does_not_tell_its_job(tmp_path, extension, rank):
    saved = ftn_pytorch.load_recording(BEFORE)
    for number in (0, 1):
        rank(number)
        saved.save_recording(str(tmp_path / "saved.ftr"))
        assert saved.restore(str(tmp_path / "saved.ftr")) is None


@pytest.mark.parametrize("first, second", [("torchscript", "recording"), ("samples", "torchscript")])
def test_ranks_that_save_files_of_other_kinds_are_told(tmp_path, fails, writers, rank, first, second):
    import torch

    from ftn_pytorch.kit import storage
    from ftn_pytorch.opening import open_runner

    path = str(tmp_path / "saved.npz")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 1)), tmp_path / "net.pt")
    writers["torchscript"] = open_runner(str(tmp_path / "net.pt"), {}, {}).save
    writers["samples"] = lambda path: storage.export(path, {"x": torch.zeros(2)})
    rank(0)
    writers[first](path)
    rank(1)
    with fails("LOCKED", f"{path} was written by rank 0 of this job"):
        writers[second](path)


@pytest.mark.parametrize("ending", ["npz", "h5"])
def test_two_ranks_that_export_samples_to_one_name_are_told(tmp_path, fails, rank, ending):
    pytest.importorskip("torch")
    pytest.importorskip("h5py" if ending == "h5" else "numpy")
    import torch

    from ftn_pytorch.kit import Replay, storage

    path, replay = str(tmp_path / f"samples.{ending}"), Replay(4)
    replay.add(torch.arange(3.0))
    replay.export(path)  # outside of a job
    for _ in range(2):
        rank(0)
        replay.export(path)
    before = Path(path).read_bytes()
    rank(1)
    with fails("LOCKED", f"{path} was written by rank 0 of this job", "this is rank 1", "%r"):
        replay.export(path)
    assert Path(path).read_bytes() == before
    replay.export(str(tmp_path / f"samples%r.{ending}"))
    rank(1, job="job.2")
    replay.export(path)
    assert names(tmp_path) == [f"samples.{ending}", f"samples1.{ending}"]
    assert list(storage.load(path)) == ["x0"] and storage.load(path)["x0"].tolist() == [0, 1, 2]


def test_a_step_of_a_recording_is_asked_once_for_its_writer(tmp_path, extension, rank, monkeypatch):
    """The plug-in asks, which writes it."""
    saved, asked = ftn_pytorch.load_recording(BEFORE), []
    monkeypatch.setattr(file, "refuse_other_rank", asked.append)
    rank(0)
    saved.write(str(tmp_path / "steps"), step=7)
    assert not asked and names(tmp_path / "steps") == [".lock", *of_steps(7)]


@pytest.mark.parametrize("kind", ["objects", "recording"])
def test_a_step_that_another_rank_has_written_into_a_folder_stays(tmp_path, fails, checkpoint, rank, kind, request):
    path = str(tmp_path / "steps")
    if kind == "recording":
        request.getfixturevalue("extension")
        checkpoint = ftn_pytorch.load_recording(BEFORE)
    rank(0)
    Checkpoint(values={}).write(path, step=7)
    rank(1)
    with fails("LOCKED", f"{of_steps(7)[0]} was written by rank 0 of this job"):
        checkpoint.write(path, step=7)
    checkpoint.write(path, step=8)
    rank(1, job="job.2")
    checkpoint.write(path, step=8)
    assert names(tmp_path / "steps") == [".lock", *of_steps(7, 8)]


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


def test_ranks_that_write_one_log_after_the_other_are_told(rank, tmp_path, fails):
    """The second one would take the rows of the first for those of a former run."""
    path = tmp_path / "log.csv"

    def write(step):
        Log(path).write(step, loss=0.5)

    rank(0)
    write(1)
    rank(1)
    for _ in range(2):
        with fails("LOCKED", f"{path} was written by rank 0 of this job", "%r"):
            write(2)
    assert path.read_text() == "step,loss\n1,0.5\n"
    rank(0)
    write(3)
    rank(1, "job.2")
    write(4)
    assert names(tmp_path) == [".log.csv.lock", "log.csv", "log.csv.abandoned", "log.csv.abandoned.2"]
    path.unlink()
    rank(0, "job.2")
    write(5)
    assert path.read_text() == "step,loss\n5,0.5\n"
