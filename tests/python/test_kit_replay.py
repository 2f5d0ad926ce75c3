# SPDX-License-Identifier: MIT
"""Replay buffers: which samples are there, which are drawn, and what does not fit."""

import os
import resource
import signal
import sys
import threading

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from ftn_pytorch.kit import NStep, Replay, Rollout


def rows(first, last):
    """Samples that tell their number: (n, 2) and (n,)."""
    number = torch.arange(first, last, dtype=torch.float32)
    return torch.stack([number, -number], 1), number


def numbers(replay):
    x, y = replay[:]
    assert torch.equal(x, torch.stack([y, -y], 1))
    return sorted(y.int().tolist())


@pytest.mark.parametrize("sizes", [[4, 4, 4, 4], [7, 9], [25], [1] * 23, [10], [3, 40, 2], [0, 5]])
def test_a_ring_has_the_newest_samples(sizes):
    replay, end = Replay(10), 0
    for size in sizes:
        replay.add(*rows(end, end + size))
        end += size
    assert len(replay) == min(end, 10)
    assert numbers(replay) == list(range(max(end - 10, 0), end))


def test_what_was_added_is_a_copy_and_the_memory_stays_where_it_is():
    replay, (x, y) = Replay(8), rows(0, 3)
    replay.add(x, y)
    places = [column.data_ptr() for column in replay[:]]
    x.zero_()
    y.zero_()
    assert numbers(replay) == [0, 1, 2]
    replay.add(*rows(3, 8))
    assert [column.data_ptr() for column in replay[:]] == places


def test_a_reservoir_is_a_uniform_choice_of_all_that_came():
    counts = torch.zeros(60)
    for seed in range(400):
        replay = Replay(20, "reservoir", seed=seed)
        for first in (0, 15, 33, 34):
            replay.add(*rows(first, {0: 15, 15: 33, 33: 34, 34: 60}[first]))
        assert len(set(numbers(replay))) == 20
        counts[numbers(replay)] += 1
    # 400 / 3 each; the standard deviation of a count is 9.4
    assert (counts - 400 / 3).abs().max() < 45


def test_prioritised_samples_are_drawn_in_proportion():
    replay = Replay(5, "prioritised", exponent=1.0)
    replay.add(*rows(0, 5))
    replay.prioritise(torch.arange(5), torch.tensor([1.0, 2.0, 3.0, 4.0, 0.0]))
    drawn = torch.bincount(replay.draw(20_000), minlength=5) / 20_000
    torch.testing.assert_close(drawn, torch.tensor([0.1, 0.2, 0.3, 0.4, 0.0]), atol=0.02, rtol=0)
    torch.testing.assert_close(
        replay.weights(torch.arange(4)), 1 / torch.tensor([1.0, 2, 3, 4], dtype=torch.float64), atol=1e-5, rtol=0
    )
    replay.add(*rows(5, 6))  # in the place of row 0, as likely as the likeliest
    drawn = torch.bincount(replay.draw(20_000), minlength=5) / 20_000
    torch.testing.assert_close(drawn, torch.tensor([4, 2, 3, 4, 0]) / 13.0, atol=0.02, rtol=0)


@pytest.mark.parametrize("kind", ["ring", "reservoir", "prioritised"])
def test_calls_are_held_out_evenly_and_never_drawn(kind):
    replay = Replay(1000, kind, held_out=0.25)
    for call in range(12):
        replay.add(*rows(3 * call, 3 * call + 3))
    held = [number for call in (3, 7, 11) for number in range(3 * call, 3 * call + 3)]
    assert numbers(replay.held_out) == held
    assert numbers(replay) == sorted(set(range(36)) - set(held))
    assert not set(replay.sample(2000)[1].int().tolist()) & set(held)


def test_the_share_that_is_held_out_does_not_drift_by_rounding():
    replay = Replay(2000, held_out=0.1)
    for call in range(2000):
        replay.add(torch.tensor([float(call)]))
    assert replay.held_out.seen == 200


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_serves_it(workers):
    replay = Replay(100)
    replay.add(*rows(0, 64))
    shuffled = DataLoader(replay, batch_size=16, shuffle=True, num_workers=workers)
    served = [y for _, y in shuffled]
    assert [len(y) for y in served] == [16] * 4
    assert sorted(torch.cat(served).tolist()) == list(range(64))
    assert torch.cat(served).tolist() != list(range(64))
    whole = DataLoader(
        replay, sampler=BatchSampler(RandomSampler(replay), 16, False), batch_size=None, num_workers=workers
    )
    assert sorted(torch.cat([y for _, y in whole]).tolist()) == list(range(64))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_serve_what_lies_in_a_file(method, tmp_path):
    replay = Replay(64, memory_limit=0, folder=str(tmp_path))
    replay.add(*rows(0, 64))
    loader = DataLoader(replay, batch_size=16, num_workers=1, multiprocessing_context=method)
    assert torch.cat([y for _, y in loader]).tolist() == list(range(64))


def test_beyond_its_limit_it_lies_in_a_file_that_leaves_nothing_behind(tmp_path):
    replay = Replay(10, memory_limit=119, folder=str(tmp_path))
    assert Replay(10, memory_limit=120, folder="/nowhere").add(*rows(0, 2)) is None
    replay.add(*rows(0, 25))
    assert numbers(replay) == list(range(15, 25))
    assert "(deleted)" in mapping_of(replay[:][0].data_ptr())
    assert list(tmp_path.iterdir()) == []


def mapping_of(address):
    with open("/proc/self/maps") as maps:
        for line in maps:
            first, last = (int(each, 16) for each in line.split()[0].split("-"))
            if first <= address < last:
                return line
    return ""


def test_a_full_disk_is_told_before_a_sample_is_lost(tmp_path, fails):
    replay = Replay(1_000_000, memory_limit=0, folder=str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with fails("FILE", "8.0 MB", str(tmp_path)):
            replay.add(*rows(0, 3))
        assert len(replay) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    replay.add(*rows(0, 3))
    assert numbers(replay) == [0, 1, 2]


def test_what_does_not_fit_is_refused_and_changes_nothing(fails):
    replay = Replay(10, held_out=0.5)
    replay.add(*rows(0, 4))
    for wrong in [(torch.zeros(3, 2),), (torch.zeros(3, 3), torch.zeros(3)), (torch.zeros(3, 2), torch.zeros(2)), ()]:
        with fails("SHAPE"):
            replay.add(*wrong)
    with fails("SHAPE", "first axis"):
        replay.add(torch.tensor(1.0), torch.tensor(1.0))
    with fails("DTYPE", "torch.complex64"):
        replay.add(torch.zeros(3, 2), torch.zeros(3, dtype=torch.complex64))
    assert numbers(replay) == [0, 1, 2, 3]
    replay.add(*rows(4, 5))
    assert numbers(replay.held_out) == [4]


def test_what_makes_no_sense_is_refused(fails):
    with fails("ARGUMENT", "'heap'", "reservoir"):
        Replay(10, "heap")
    with fails("ARGUMENT", "capacity is 0"):
        Replay(0)
    with fails("ARGUMENT", "held_out is 1.0"):
        Replay(1, held_out=1.0)
    with fails("ARGUMENT", "no samples"):
        Replay(10).sample(3)
    replay = Replay(10)
    replay.add(*rows(0, 4))
    with fails("ARGUMENT", "prioritised"):
        replay.prioritise(torch.arange(2), torch.ones(2))
    with pytest.raises(IndexError):
        replay[4]


@pytest.mark.parametrize("part", [lambda: Replay(1e5), lambda: NStep(torch.tensor(2.5)), lambda: Rollout("3")])
def test_a_number_of_samples_or_steps_is_whole(part, fails):
    with fails("ARGUMENT", "it must be a whole number of at least 1"):
        part()


@pytest.mark.parametrize("row", [-1, 4, 9, 10])
def test_rows_that_are_not_there_are_refused(row, fails):
    """There is memory behind the last sample, with anything in it."""
    replay = Replay(10, "prioritised")
    replay.add(*rows(0, 4))
    wrong = torch.tensor([0, row])
    for use in (replay.__getitem__, replay.weights, lambda given: replay.prioritise(given, torch.ones(2))):
        with pytest.raises(IndexError, match="of 4 samples"):
            use(wrong)
    assert torch.equal(replay.weights(torch.arange(4)), torch.ones(4).double())


def test_errors_that_are_not_those_of_the_rows_are_refused(fails):
    replay = Replay(10, "prioritised")
    replay.add(*rows(0, 4))
    for errors in (torch.ones(3), torch.ones(2, 1), torch.ones(())):
        with fails("SHAPE", "(2,)", str(tuple(errors.shape))):
            replay.prioritise(torch.arange(2), errors)
    with fails("ARGUMENT", "not a number"):
        replay.prioritise(torch.arange(2), torch.tensor([1.0, float("nan")]))
    replay.prioritise(torch.arange(0), torch.ones(0))
    assert torch.equal(replay.weights(torch.arange(4)), torch.ones(4).double())


def test_rows_and_errors_may_be_lists_and_arrays():
    replay = Replay(10, "prioritised", exponent=1.0)
    replay.add(*rows(0, 2))
    replay.prioritise([0, 1], np.array([1.0, 4.0]))
    torch.testing.assert_close(replay.weights([0, 1]), torch.tensor([1, 0.25]).double(), atol=1e-5, rtol=0)


STATES = [
    pytest.param({"kind": kind, "memory_limit": limit}, id=f"{kind}-{limit}")
    for kind in ("ring", "reservoir", "prioritised")
    for limit in (float("inf"), 0)
]


@pytest.mark.parametrize("options", STATES)
@pytest.mark.parametrize("count", [0, 2, 9])
def test_a_state_goes_on_bit_for_bit(options, count, tmp_path):
    def make(seed):
        return Replay(20, held_out=0.3, seed=seed, folder=str(tmp_path), **options)

    def go_on(replay):
        replay.add(*rows(1000, 1004))
        drawn = replay.draw(50)
        if options["kind"] == "prioritised":
            replay.prioritise(drawn.unique(), drawn.unique().float())
        return [drawn, *replay.sample(50), *replay[:], *(replay.held_out[:] if len(replay.held_out) else ())]

    first, second = make(1), make(2)
    for call in range(count):
        first.add(*rows(5 * call, 5 * call + 5))
    if count and options["kind"] == "prioritised":
        first.prioritise(first.draw(7), torch.rand(7))
    second.add(*rows(500, 530))  # of a run that is given up
    torch.save(first.state_dict(), tmp_path / "state")
    state = torch.load(tmp_path / "state", weights_only=True)
    fresh = make(3)
    fresh.load_state_dict(state)
    second.load_state_dict(state)
    expected = go_on(first)
    for other in (fresh, second):
        found = go_on(other)
        assert len(found) == len(expected)
        assert all(torch.equal(one, each) for one, each in zip(found, expected))


@pytest.mark.parametrize(
    ("options", "piece"),
    [
        ({"capacity": 21}, "capacity is 20 in the file and 21 here"),
        ({"kind": "reservoir"}, "kind is ring"),
        ({"held_out": 0.5}, "held_out is 0.0 in the file"),
    ],
)
def test_a_config_that_changed_is_told(options, piece, fails):
    old = Replay(20)
    old.add(*rows(0, 3))
    new = Replay(**{"capacity": 20, **options})
    new.add(*rows(5, 9))
    with fails("FORMAT", piece):
        new.load_state_dict(old.state_dict())
    assert numbers(new) == [5, 6, 7, 8]
    narrow = Replay(20)
    narrow.add(torch.zeros(4, 2))
    with fails("FORMAT", "samples are"):
        narrow.load_state_dict(old.state_dict())


@pytest.mark.parametrize("ending", ["npz", "h5"])
def test_samples_are_exported_oldest_first(ending, tmp_path):
    if ending == "h5":
        h5py = pytest.importorskip("h5py")
    replay = Replay(10, held_out=0.5)
    for call in range(8):
        replay.add(*rows(3 * call, 3 * call + 3))
    path = tmp_path / f"samples.{ending}"
    replay.export(path, ["x", "target"])
    with np.load(path) if ending == "npz" else h5py.File(path) as file:
        assert sorted(file) == ["held_out_target", "held_out_x", "target", "x"]
        target = [number for call in (0, 2, 4, 6) for number in range(3 * call, 3 * call + 3)][-10:]
        assert file["target"][:].tolist() == target
        assert file["x"][:, 1].tolist() == [-number for number in target]
        assert file["held_out_target"][:].tolist() == [16, 17, 21, 22, 23]


def test_an_export_that_fails_says_why(tmp_path, fails, monkeypatch):
    replay = Replay(10)
    replay.add(*rows(0, 3))
    with fails("ARGUMENT", ".npz"):
        replay.export(str(tmp_path / "samples.csv"))
    with fails("ARGUMENT", "1 names for 2"):
        replay.export(str(tmp_path / "samples.npz"), ["x"])
    for names in (["x", "x"], ["x", "held_out_x"]):
        with fails("ARGUMENT", ", ".join(names), "two mean one array"):
            replay.export(str(tmp_path / "samples.npz"), names)
    with fails("FILE", "nowhere"):
        replay.export(str(tmp_path / "nowhere" / "samples.npz"))
    with fails("FILE", "nowhere", "another folder"):
        Replay(10, memory_limit=0, folder=str(tmp_path / "nowhere")).add(*rows(0, 3))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with fails("IMPORT", "pip install h5py"):
        replay.export(str(tmp_path / "samples.h5"))
    assert list(tmp_path.iterdir()) == []


def test_an_export_replaces_a_file_as_a_whole_or_not_at_all(tmp_path, fails, monkeypatch):
    replay = Replay(10)
    replay.add(*rows(0, 3))
    path = tmp_path / "samples.npz"
    replay.export(str(path))
    replay.add(*rows(3, 5))

    def half(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, fails("FILE", "samples.npz", "No space left"):
        patched.setattr(np, "savez", half)
        patched.setattr(os, "unlink", lambda path: None)  # as if it were killed: the next writer removes what is left
        replay.export(str(path))
    (part,) = tmp_path.glob("*.part.npz")
    part.rename(part.with_name(part.name.replace(str(os.getpid()), "4711")))
    with np.load(path) as file:
        assert len(file["x0"]) == 3
    replay.export(str(path))
    with np.load(path) as file:
        assert len(file["x0"]) == 5
    (tmp_path / "folder.npz").mkdir()
    with fails("FILE", "folder.npz", "it is a folder"):
        replay.export(str(tmp_path / "folder.npz"))
    assert sorted(os.listdir(tmp_path)) == ["folder.npz", "samples.npz"]


class Slow:
    """A column that lets another thread go on before it is written."""

    def __init__(self, column, meanwhile):
        self._column, self._meanwhile = column, meanwhile

    def narrow(self, *arguments):
        self._meanwhile()
        return self._column.narrow(*arguments)

    def __getattr__(self, name):
        return getattr(self._column, name)

    def __getitem__(self, rows):
        return self._column[rows]


@pytest.mark.parametrize("read", [lambda each: each.sample(16), lambda each: each[:], lambda each: each[[0, 1]]])
def test_a_thread_that_samples_never_gets_half_of_a_call(read):
    replay, seen = Replay(4), []
    replay.add(torch.zeros(4), torch.zeros(4))
    other = threading.Thread(target=lambda: seen.append([each.clone() for each in read(replay)]))
    first, second = replay._columns

    def meanwhile():
        other.start()
        other.join(0.5)  # it waits for the end of the call

    replay._columns = (first, Slow(second, meanwhile))
    replay.add(torch.ones(4), torch.ones(4))
    other.join()
    x, target = seen[0]
    assert torch.equal(x, target)


def test_a_process_that_is_forked_while_a_thread_adds_can_read():
    replay = Replay(4)
    replay.add(torch.zeros(4))
    holds, goes_on = threading.Event(), threading.Event()

    def hold():
        with replay._lock:
            holds.set()
            goes_on.wait()

    other = threading.Thread(target=hold)
    other.start()
    holds.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(len(replay))
    goes_on.set()
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
