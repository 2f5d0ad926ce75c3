# SPDX-License-Identifier: MIT
"""What other threads do in the middle of a check stays done, and the check is made again later.

The other thread is steered: it does its work between the call of the function and the run of the recording.
"""

import ctypes
import threading

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording import comparison  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

X = torch.arange(6.0).reshape(2, 3)


class Other:
    """A thread that works in the middle of each check, as long as it is told to."""

    def __init__(self, monkeypatch):
        self.checks = self.works = 0
        self.work = None
        both_ways = comparison.Call.both_ways

        def interrupted(call, replay, *others):
            return both_ways(call, Replayed(self, replay), *others)

        monkeypatch.setattr(comparison.Call, "both_ways", interrupted)

    def go(self):
        self.checks += 1
        if self.work is not None:
            thread = threading.Thread(target=self.work)
            thread.start()
            thread.join()
            self.works += 1


class Replayed:
    def __init__(self, other, replay):
        self._other, self._replay = other, replay

    def run(self, args, named):
        self._other.go()
        return self._replay.run(args, named)

    def why(self):
        return self._replay.why()


@pytest.fixture
def other(monkeypatch):
    return Other(monkeypatch)


def assert_postponed(apply, other, calls=12):
    """The function gives what it gives as it is, is not given up, and is recorded when it is left alone."""
    with pytest.warns(FtnPytorchWarning, match="is not recorded yet: while it was checked, something else has changed"):
        for _ in range(calls):
            apply()
    assert other.works == other.checks == 3
    other.work = None
    for _ in range(20):
        apply()


def added_by_an_operator(w):
    with torch.no_grad():
        w.add_(1)


def added_to_the_data(w):
    w.data.add_(1)


def added_by_numpy(w):
    w.detach().numpy()[:] += 1


@pytest.mark.parametrize("add", [added_by_an_operator, added_to_the_data, added_by_numpy])
def test_what_another_thread_learns_is_not_taken_back(other, add):
    head, made = torch.nn.Linear(3, 1), []
    torch.nn.init.zeros_(head.weight)
    other.work = lambda: add(head.weight)
    apply = recorded(lambda x: head(x))

    def call():
        before = head.weight.detach().clone()
        made.append(apply(X))
        assert torch.equal(made[-1], (X @ before.T + head.bias).detach())

    assert_postponed(call, other)
    assert torch.equal(head.weight.detach(), torch.full((1, 3), float(other.works))) and other.works
    assert apply.recording.is_ready, apply.recording.obstacle


def test_numbers_that_another_thread_draws_do_not_come_again(other):
    drawn = []
    other.work = lambda: drawn.append(torch.rand(()).item())
    apply = recorded(lambda x: x * 2)
    for _ in range(8):
        apply(X)
    assert apply.recording.is_ready and other.works == 3 == len(set(drawn))


def test_a_function_that_draws_itself_is_checked_again(other):
    torch.manual_seed(0)
    other.work = lambda: torch.rand(())
    apply = recorded(lambda x: torch.dropout(x, 0.5, True))
    assert_postponed(lambda: apply(X), other)
    assert apply.recording.is_ready, apply.recording.obstacle


def test_a_gradient_that_another_thread_computes_stays(other):
    head = torch.nn.Linear(3, 1)
    other.work = lambda: setattr(head.weight, "grad", torch.ones(1, 3))
    apply = recorded(lambda x: head(x))
    for _ in range(4):
        apply(X)
    assert other.works == 1 and torch.equal(head.weight.grad, torch.ones(1, 3)) and not apply.recording.obstacle


def test_what_the_function_learns_itself_is_learnt_once(other):
    head, others = torch.nn.Linear(3, 1), torch.zeros(3)
    other.work = lambda: others.add_(1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = head(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    plain = [step(X).item() for _ in range(14)]
    torch.nn.init.ones_(head.weight), torch.nn.init.ones_(head.bias)
    optimizer.state.clear()
    again = [step(X).item() for _ in range(14)]
    torch.nn.init.ones_(head.weight), torch.nn.init.ones_(head.bias)
    optimizer.state.clear()
    apply = recorded(step)
    assert [apply(X).item() for _ in range(14)] == again != plain
    assert apply.recording.is_ready and others[0] == other.works == 3


def test_memory_that_changes_out_of_sight_is_left_as_it_is():
    """By the function itself, with what is no operator: it is never recorded, and one sentence tells."""
    factor = torch.zeros(2)

    def step(x):
        doubled = x * 2
        ctypes.memmove(factor.data_ptr(), doubled.data_ptr(), 8)
        return x * factor

    apply = recorded(step)
    with pytest.warns(FtnPytorchWarning, match="is not recorded yet: while it was checked, something else has changed"):
        for call in range(40):
            x = torch.full((2,), float(call))
            assert torch.equal(apply(x), 2 * x * x)
    assert not apply.recording.is_ready
