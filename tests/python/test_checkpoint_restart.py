# SPDX-License-Identifier: MIT
"""Restarts: in a new process, and after a process was killed at any moment."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

from checkpoint_training import Training
from forking import without_devices
from ftn_pytorch.checkpoint import Checkpoint, file, folder

ASKED = os.environ.get("FTN_PYTORCH_TEST_KILLS")
KILLS = [int(ASKED)] if ASKED else [20, pytest.param(200, marks=pytest.mark.slow)]
SEED = int(os.environ.get("FTN_PYTORCH_TEST_SEED") or 0)
KEEP = 2


def test_a_restart_in_a_new_process_goes_on_bit_for_bit(python, tmp_path, monkeypatch):
    code = f"""
    import sys
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    from checkpoint_training import Training
    first, last = int(sys.argv[1]), int(sys.argv[2])
    training = Training()
    if first:
        assert training.checkpoint.restore("steps") == first
    for step in range(first, last):
        print(training.step().hex())
    training.checkpoint.write("steps", step=last)
    """
    monkeypatch.chdir(tmp_path)
    halves = python(code, 0, 100, warm=True) + python(code, 100, 200, warm=True)
    os.mkdir("whole")
    monkeypatch.chdir("whole")
    assert halves == python(code, 0, 200, warm=True)
    assert len(halves.split()) == 200


def train_until_killed(place, report):
    """In a forked child: go on from the newest checkpoint, write one after each step, tell each that was written."""
    training = Training()
    if os.path.isdir(place):
        training.checkpoint.restore(place)
    while True:
        training.step()
        training.checkpoint.write(place, keep=KEEP, step=training.counters["step"])
        os.write(report, training.counters["step"].to_bytes(4, "little"))


def is_written(place):
    """Whether a file is being written."""
    return any(name.endswith(".part") for name in os.listdir(place))


def kill_one(place, delay):
    """Steps that a child reported before it was killed: some time after its first report, for no time given when it is
    seen to write a file.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            train_until_killed(place, write)
        except BaseException as failure:
            print(f"the child failed: {failure!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    os.close(write)
    reported = os.read(read, 4)
    if delay is None:
        while not is_written(place) and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            pass
    else:
        time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "the child ended by itself"
    while piece := os.read(read, 4096):
        reported += piece
    os.close(read)
    return [int.from_bytes(reported[at : at + 4], "little") for at in range(0, len(reported), 4)]


@pytest.mark.parametrize("kills", KILLS)
def test_a_kill_at_any_moment_loses_nothing_but_the_step_in_progress(kills, tmp_path):
    if torch.cuda.is_available():
        without_devices(f"{__file__}::test_a_kill_at_any_moment_loses_nothing_but_the_step_in_progress[{kills}]")
        return
    print(f"seed {SEED}, {kills} kills; to repeat: FTN_PYTORCH_TEST_SEED={SEED} FTN_PYTORCH_TEST_KILLS={kills}")
    dice = random.Random(SEED)
    place = str(tmp_path / "steps")
    threads = torch.get_num_threads()
    # A fork keeps one thread only, so a pool of them must not be waited for.
    torch.set_num_threads(1)
    # What torch imports at its first step need not be imported by each child.
    Training().step()
    digests, last, left_over, between = {}, 0, 0, 0
    try:
        made = 0
        # A file may be complete between the look at the folder and the kill.
        while made < kills or left_over == 0:
            steps = kill_one(place, None if made % 4 == 3 else dice.uniform(0, 0.03))
            made += 1
            assert steps == list(range(last + 1, last + 1 + len(steps)))
            newest = folder.listed(place)
            assert newest[0].step in (steps[-1], steps[-1] + 1), "a step that was told is lost"
            assert len(newest) <= KEEP + 1
            between += newest[0].step != steps[-1] or len(newest) > KEEP
            left_over += is_written(place)
            for entry in newest:
                with file.opened(entry.path) as (about, _raw):
                    assert about["step"] == entry.step
            last = newest[0].step
            training = Training()
            assert training.checkpoint.restore(place) == last
            digests[last] = training.digest()
        whole = Training()
        for step in range(1, last + 1):
            whole.step()
            if step in digests:
                assert digests[step] == whole.digest(), f"step {step} is not what it would have been"
    finally:
        torch.set_num_threads(threads)
    print(f"{last} steps; killed while a file was written {left_over} times, between file and report {between} times")
    assert Checkpoint.read(place)["objects"]["counters"] == {"step": last}
