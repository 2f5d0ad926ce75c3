# SPDX-License-Identifier: MIT
"""Calls of recorded functions: shapes, modes, aliases, failures, threads."""

import copy
import itertools
import threading

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording import comparison  # noqa: E402

nn = torch.nn


pytestmark = pytest.mark.usefixtures("extension")


def test_train_and_eval_in_turn_keep_their_recordings():
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    calls, x = itertools.count(), torch.randn(6, 4)

    def function(x):
        next(calls)
        return net(x)

    apply, plain = recorded(function, ignore=["calls"]), copy.deepcopy(net)
    for number in range(60):
        for each in (net, plain):
            each.train(number % 2 == 0)
        assert torch.equal(apply(x), plain(x))
        if number == 30:
            begun = next(calls)
    assert apply.recording.is_ready and next(calls) == begun + 1, "Python is run in the first calls only"


@pytest.mark.parametrize("count", [12, 20])
def test_many_shapes_in_turn(count):
    net, calls = nn.Linear(4, 2), itertools.count()

    def function(x):
        next(calls)
        return net(x)

    apply = recorded(function, ignore=["calls"])
    for number in range(10):
        for rows in range(1, count + 1):
            x = torch.randn(rows, 4)
            assert torch.equal(apply(x), net(x))
        if number == 7:
            begun = next(calls)
    assert apply.recording.is_ready and next(calls) == begun + 1


def test_a_field_that_takes_ever_new_values():
    """Each lasts for a while; the recordings of old ones do not pile up."""
    held = {"scale": 0.0}
    apply = recorded(lambda x: x * held["scale"])
    for number in range(30):
        held["scale"] = float(number)
        for _ in range(110):
            assert apply(torch.ones(1)).item() == number
    assert apply.recording.is_ready and len(apply.recording._ready) <= 24


def test_modes_have_recordings_of_their_own():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    apply, x = recorded(lambda x: net(x)), torch.randn(3, 4)
    for _ in range(8):
        assert apply(x).dtype == torch.float32
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(apply(x), net(x))
        with torch.inference_mode():
            assert torch.equal(apply(x), net(x))
    assert apply.recording.is_ready
    assert torch.equal(torch.vmap(apply)(x), net(x))


def test_inputs_that_are_written_count_as_changed():
    @recorded
    def double(x):
        x[0] *= 2
        return x.sum()

    for _ in range(8):
        x = torch.ones(3)
        before = x._version
        assert double(x) == 4 and x.tolist() == [2, 1, 1]
        assert x._version > before
    assert double.recording.is_ready


def test_a_failure_gives_the_text_of_the_function():
    @recorded
    def solve(a, b):
        return torch.linalg.solve(a, b)

    a, b = torch.eye(3), torch.randn(3, 1)
    for _ in range(8):
        assert torch.equal(solve(a, b), b)
    with pytest.raises(RuntimeError) as plain:
        solve.__wrapped__(torch.zeros(3, 3), b)
    with pytest.raises(RuntimeError) as found:
        solve(torch.zeros(3, 3), b)
    assert str(found.value) == str(plain.value)
    assert torch.equal(solve(a, b), b)


def test_threads_share_a_recording():
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    apply = recorded(lambda x: net(x))
    for _ in range(8):
        apply(torch.ones(3, 4))
    wrong = []

    def work(number):
        x = torch.full((3, 4), float(number))
        expected = net(x).detach()
        wrong.extend(number for _ in range(300) if not torch.equal(apply(x), expected))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_interrupt_of_a_check_leaves_one_call(monkeypatch):
    total = torch.zeros(1)

    def interrupt(*given):
        raise KeyboardInterrupt

    @recorded
    def add(x):
        total.add_(x)
        return total * 2

    for _ in range(3):
        add(torch.ones(1))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(comparison, "difference_of", interrupt)
        add(torch.ones(1))
    assert total == 4
    assert add(torch.ones(1)) == 10
