# SPDX-License-Identifier: MIT
"""What a step reaches, and what does not count."""

import threading

import numpy
import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

nn = torch.nn
X = torch.arange(6.0).reshape(2, 3)


class Greedy:
    """Says nothing of itself."""

    def __len__(self):
        raise RuntimeError("no length")

    __iter__ = items = keys = __bool__ = __eq__ = __hash__ = __len__

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")


class Careful(torch.optim.SGD):
    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for each in group["params"]:
                    each.sub_(each.grad * min(group["lr"], 0.05))


def test_numbers_of_an_optimizer_of_the_user_are_constants():
    """A rule that two rates show need not hold for a third: this one has a limit."""

    def run(record):
        torch.manual_seed(1)
        net = nn.Linear(3, 1)
        made = Careful(net.parameters(), lr=0.2)

        def step(x):
            made.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            made.step()
            return loss.detach()

        step = record(step)
        losses = []
        for call in range(30):
            made.param_groups[0]["lr"] = 0.2 if call < 20 else 0.01
            losses.append(step(X))
        return torch.stack(losses)

    assert torch.equal(run(recorded), run(lambda function: function))


def test_objects_that_raise_when_they_are_looked_at():
    held = [Greedy()]
    apply = recorded(lambda x: x * len(held))
    for _ in range(9):
        assert torch.equal(apply(X), X)
    assert apply.recording.is_ready, apply.recording.obstacle


def test_names_that_are_ignored():
    calls = iter(range(100))

    def function(x):
        next(calls)
        return x * 2

    apply = recorded(function, ignore=["calls"])
    for _ in range(9):
        apply(X)
    assert apply.recording.is_ready


class Trainer:
    """As many write one. Only what its step mentions counts."""

    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.99)
        self.history, self.numbers, self.lock = [], numpy.random.default_rng(1), threading.local()
        self.advance = recorded(self.step)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.loss(self.net(x))
        loss.backward()
        self.optimizer.step()
        return loss

    def loss(self, y):
        return y.square().mean()

    def train(self):
        x = X + torch.as_tensor(self.numbers.random((2, 3)), dtype=torch.float32)
        self.history.append(self.advance(x).item())
        self.schedule.step()


def test_fields_that_no_code_of_the_step_mentions_do_not_count():
    made = Trainer()
    for _ in range(12):
        made.train()
    assert made.advance.recording.is_ready, made.advance.recording.obstacle


def test_tensors_of_numbers_begin_anew_in_each_call():
    def function(x):
        total = torch.tensor(0.0)
        total += x.sum()
        return total, x + torch.tensor([1.0, 2.0, 3.0])

    apply = recorded(function)
    for call in range(12):
        for one, other in zip(apply(X + call), function(X + call)):
            assert torch.equal(one, other)
    assert apply.recording.is_ready, apply.recording.obstacle


def test_hooks_around_a_call_see_what_is_saved():
    weight = torch.ones(3, requires_grad=True)

    @recorded
    def slope(x):
        return torch.autograd.grad((x * weight).exp().sum(), weight)[0]

    for _ in range(9):
        slope(X)
    assert slope.recording.is_ready
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda each: saved.append(each) or each, lambda each: each):
        slope(X)
    assert saved


def test_gradients_after_an_operator_that_fails_late():
    """The statistics of the batch are written first, so the call cannot be made again."""

    def run(record):
        torch.manual_seed(1)
        net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 4))

        def step(x, rows):
            net.zero_grad()
            loss = nn.functional.cross_entropy(net(x), rows)
            loss.backward()
            return loss.detach()

        step = record(step)
        for _ in range(9):
            step(X, torch.tensor([0, 1]))
        with pytest.raises(IndexError):
            step(X, torch.tensor([0, 7]))
        return [each.grad for each in net.parameters()], net[0].running_mean

    (gradients, mean), (expected, same) = run(recorded), run(lambda function: function)
    assert torch.equal(mean, same)
    assert [each is None for each in gradients] == [each is None for each in expected]
