# SPDX-License-Identifier: MIT
"""Calls of recorded functions: shapes, modes, aliases, failures, threads."""

import copy
import itertools
import threading

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording import comparison  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

nn = torch.nn


pytestmark = pytest.mark.usefixtures("extension")


def test_a_network_of_the_same_name_is_another_one(load):
    text = """
        import torch
        from ftn_pytorch import recorded
        torch.manual_seed(1)
        net = torch.nn.Linear(2, 1)
        @recorded
        def apply(x):
            return net(x)
        def replace():
            global net
            net = torch.nn.Linear(2, 1)
        def plain(x):
            return net(x).detach()
    """
    runner = load(text)
    names = {name: runner.find(name) for name in ("apply", "plain", "replace")}
    x = torch.randn(3, 2)
    for _ in range(3):
        for _ in range(8):
            assert torch.equal(names["apply"](x), names["plain"](x))
        assert names["apply"].recording.is_ready
        names["replace"]()


def test_shapes_types_and_strides_have_recordings_of_their_own():
    net = nn.Linear(4, 2).double()

    @recorded
    def apply(x, factor=1.0):
        return {"y": net(x) * factor, "both": (x.sum(), [x.mean(), 3])}

    inputs = [torch.randn(5, 4).double(), torch.randn(4, 5).double().t(), torch.randn(1, 4).double()]
    for _ in range(8):
        for x in inputs:
            for named in ({}, {"factor": 2.0}):
                found, expected = apply(x, **named), apply.__wrapped__(x, **named)
                assert torch.equal(found["y"], expected["y"]) and not found["y"].requires_grad
                assert torch.equal(found["both"][1][0], expected["both"][1][0]) and found["both"][1][1] == 3
    assert apply.recording.is_ready and not apply.recording.obstacle
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        apply(torch.randn(2, 3).double())
    assert torch.equal(apply(inputs[0])["y"], net(inputs[0]))


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


def test_arguments_that_are_one_tensor():
    @recorded
    def add(x, y):
        y += 1
        return x + y

    x, y = torch.zeros(2), torch.zeros(2)
    for _ in range(8):
        assert add(x.zero_(), y.zero_()).tolist() == [1, 1]
        assert add(x.zero_(), x).tolist() == [2, 2]


def test_derivatives_inside(load):
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()

    @recorded
    def forces(x):
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(net(x).sum(), x)
        return -slope

    for _ in range(8):
        x = torch.randn(4, 3).double()
        assert torch.equal(forces(x), forces.__wrapped__(x))
    assert forces.recording.is_ready


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
        patch.setattr(comparison.Call, "_difference", interrupt)
        add(torch.ones(1))
    assert total == 4
    assert add(torch.ones(1)) == 10


def test_a_count_that_is_asked_for():
    """A whole number in a tensor of the host, as it is before the call. Others are numbers taken out of a tensor."""
    count, rate = torch.tensor(3), torch.tensor(0.1)

    def function(x):
        y = x + 1 if count < 20 else x - 1
        count.add_(1)
        return y

    apply, number, x = recorded(function), 3, torch.ones(3)
    for _ in range(40):
        assert torch.equal(apply(x), x + 1 if number < 20 else x - 1)
        number += 1
    assert apply.recording.is_ready and count == number
    late = recorded(lambda x: (count.add_(1), x * 2 if count > 0 else x)[1])
    inexact = recorded(lambda x: x * 2 if rate < 0.1 else x)
    for each in (late, inexact):
        with pytest.warns(FtnPytorchWarning, match="a number is taken out of a tensor"):
            for _ in range(9):
                each(x)
