# SPDX-License-Identifier: MIT
"""What a step reaches, and what does not count."""

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

nn = torch.nn
X = torch.arange(6.0).reshape(2, 3)


def test_names_that_are_ignored():
    calls = iter(range(100))

    def function(x):
        next(calls)
        return x * 2

    apply = recorded(function, ignore=["calls"])
    for _ in range(9):
        apply(X)
    assert apply.recording.is_ready


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
