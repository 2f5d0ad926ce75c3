# SPDX-License-Identifier: MIT
"""Checkpoints beside other threads: of Python, that write as well, or that train and take the lock."""

import os
import threading
import time

import pytest
import torch

import ftn_pytorch
from ftn_pytorch.checkpoint import Checkpoint, archive, capture
from ftn_pytorch.system import fair_lock, process
from ftn_pytorch.values.graph import Graph


def in_threads(count, work):
    """Run work in threads; what they raised."""
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_threads_that_write_at_once_write_one_after_the_other(tmp_path):
    shared = Checkpoint(values=[torch.zeros(50_000)])
    own = [Checkpoint(values=[number] * 1000) for number in range(3)]

    def work(number):
        for step in range(4):
            shared.write(str(tmp_path / "steps"), keep=20)
            shared.save(str(tmp_path / "state"))
            own[number].save(str(tmp_path / f"own{number}"), step=step)

    assert in_threads(3, work) == []
    assert len([entry for entry in (tmp_path / "steps").iterdir() if entry.suffix == ".ckpt"]) == 12
    assert all(Checkpoint.read(str(tmp_path / f"own{number}"))["step"] == 3 for number in range(3))


def test_a_thread_with_the_lock_is_not_interrupted(tmp_path):
    values = {"a": 0, "b": 0}
    checkpoint, ended = Checkpoint(values=values), threading.Event()

    def train():
        while not ended.is_set():
            with ftn_pytorch.lock():
                values["a"] += 1
                time.sleep(0.001)
                values["b"] += 1

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for step in range(30):
            path = checkpoint.save(str(tmp_path / "state"), step=step)
            kept = Checkpoint.read(path)["objects"]["values"]
            assert kept["a"] == kept["b"]
            checkpoint.restore(path)
    finally:
        ended.set()
        thread.join()
    assert values["a"] == values["b"] > 0


def test_the_lock_may_be_taken_again_and_is_free_in_a_child(tmp_path):
    checkpoint = Checkpoint(values={})
    with ftn_pytorch.lock(), ftn_pytorch.lock():
        checkpoint.save(str(tmp_path / "state"))
    held, ended = threading.Event(), threading.Event()

    def hold():
        with ftn_pytorch.lock():
            held.set()
            ended.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if fair_lock.lock().acquire(blocking=False) else 1)
    ended.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_is_written_was_copied_before(tmp_path, monkeypatch):
    net, mean = torch.nn.Linear(3, 3), torch.zeros(4)
    before, write = net.weight.detach().clone(), archive.write

    def change_and_write(*given):
        with torch.no_grad():
            net.weight.add_(1)
            mean.add_(1)
        write(*given)

    monkeypatch.setattr(archive, "write", change_and_write)
    kept = Checkpoint.read(Checkpoint(net=net, mean=mean).save(str(tmp_path / "state")))["objects"]
    assert torch.equal(kept["net"]["weight"], before) and torch.equal(kept["mean"], torch.zeros(4))


def test_tied_weights_are_copied_and_written_once(tmp_path):
    one, two = torch.nn.Linear(300, 300, bias=False), torch.nn.Linear(300, 300, bias=False)
    two.weight = one.weight
    collector = capture.Collector(Graph({}))
    collector.encode([one, two], "nets")
    first, second = collector.arrays.values()
    assert first is second is not one.weight
    path = Checkpoint(nets=[one, two]).save(str(tmp_path / "state"))
    assert os.path.getsize(path) < 1.5 * one.weight.nbytes


@pytest.mark.parametrize("rank", [None, 3])
def test_warnings_tell_the_rank(monkeypatch, rank):
    if rank is not None:
        monkeypatch.setenv("PMI_SIZE", "4")
        monkeypatch.setenv("PMI_RANK", str(rank))
    with pytest.warns(process.FtnPytorchWarning, match="^text$" if rank is None else "^rank 3: text$"):
        process.warn("text")
