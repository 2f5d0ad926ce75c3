# SPDX-License-Identifier: MIT
"""A guard of a training: going back, ending early, inputs that were never learnt."""

import copy

import pytest
import torch

from ftn_pytorch.kit import Guard, Normaliser
from ftn_pytorch.system.process import FtnPytorchWarning

nan, inf = float("nan"), float("inf")


def training():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    return net, torch.optim.Adam(net.parameters(), lr=1e-2)


def step(net, optimizer, guard, x):
    loss = ((net(x) - x.sum(1, keepdim=True)) ** 2).mean()
    if guard.allows(loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def numbers(net, optimizer):
    states = [each for state in optimizer.state_dict()["state"].values() for each in state.values()]
    return [each.detach().clone() for each in (*net.state_dict().values(), *states)]


def same(one, other):
    return len(one) == len(other) and all(torch.equal(first, second) for first, second in zip(one, other))


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_it_goes_back_to_weights_and_optimizer_of_the_last_copy(bad):
    net, optimizer = training()
    guard = Guard(net, optimizer, every=5, tolerated=0)
    good = []
    for _ in range(12):
        good.append(numbers(net, optimizer))  # that the loss is computed with
        step(net, optimizer, guard, torch.randn(16, 3))
    with torch.no_grad():
        net[0].weight.fill_(nan)
    with pytest.warns(FtnPytorchWarning, match="the loss became"):
        assert not guard.allows(torch.tensor(bad))
    assert same(numbers(net, optimizer), good[9])
    # What follows does not change the copy.
    for _ in range(2):
        step(net, optimizer, guard, torch.randn(16, 3))
    assert not guard.allows(nan)
    assert same(numbers(net, optimizer), good[9])
    assert guard.returns == 2


def test_a_loss_that_is_wrong_from_the_beginning_leaves_the_first_weights():
    net, optimizer = training()
    guard, first = Guard(net, optimizer, tolerated=0), numbers(net, optimizer)
    with pytest.warns(FtnPytorchWarning):
        step(net, optimizer, guard, torch.full((4, 3), nan))
    assert same(numbers(net, optimizer), first)


def test_a_loss_that_diverges_counts_and_is_never_copied():
    net, optimizer = training()
    guard = Guard(net, optimizer, every=1, factor=3.0, tolerated=0)
    for _ in range(20):
        assert guard.allows(1.0)
    good = numbers(net, optimizer)
    with torch.no_grad():
        net[0].weight.add_(1)
    assert guard.allows(3.5)  # not yet divergence, but nothing to go back to
    with pytest.warns(FtnPytorchWarning, match="became 9 where"):
        assert not guard.allows(9.0)
    assert same(numbers(net, optimizer), good)


def test_what_does_not_recover_is_an_error(fails):
    net, optimizer = training()
    guard = Guard(net, optimizer, limit=3, tolerated=0)
    with pytest.warns(FtnPytorchWarning):
        assert not guard.allows(nan)
    assert not guard.allows(nan)
    assert not guard.allows(nan)
    with fails("PYTHON", "3 times", "learning rate"):
        guard.allows(nan)


def test_one_bad_loss_in_fifty_costs_one_step_and_no_progress():
    """As a run without the bad calls: nothing goes back, copies are made, and it is never an error."""
    net, optimizer = training()
    guard, random = Guard(net, optimizer), torch.Generator().manual_seed(2)
    other_net, other_optimizer = training()
    for number in range(600):
        x = torch.randn(4, 3, generator=random)
        if number % 50 == 49:
            before = numbers(net, optimizer)
            step(net, optimizer, guard, torch.full((4, 3), inf))
            assert same(numbers(net, optimizer), before)
        else:
            step(net, optimizer, guard, x)
            step(other_net, other_optimizer, Guard(), x)
    assert (guard.skipped, guard.returns) == (12, 0)
    assert same(numbers(net, optimizer), numbers(other_net, other_optimizer))
    assert int(guard._saved[1]["state"][0]["step"]) >= 490


def test_it_goes_back_only_if_the_next_losses_stay_bad():
    net, optimizer = training()
    guard = Guard(net, optimizer)
    for _ in range(3):
        step(net, optimizer, guard, torch.randn(4, 3))
    later = numbers(net, optimizer)
    assert not guard.allows(nan) and not guard.allows(inf)
    assert same(numbers(net, optimizer), later)
    assert guard.allows(1.0)
    assert not guard.allows(nan) and not guard.allows(nan)
    assert same(numbers(net, optimizer), later)
    with pytest.warns(FtnPytorchWarning, match="the loss became"):
        assert not guard.allows(nan)
    assert not same(numbers(net, optimizer), later) and (guard.returns, guard.skipped) == (1, 5)


def test_a_good_loss_ends_the_row_of_returns():
    net, optimizer = training()
    guard = Guard(net, optimizer, limit=2, tolerated=0)
    with pytest.warns(FtnPytorchWarning):
        assert not guard.allows(nan)
    for _ in range(20):
        assert guard.allows(1.0)
        assert not guard.allows(nan)
    assert not guard.allows(nan)
    assert guard.returns == 22


def test_a_state_keeps_the_bad_losses_of_a_row():
    net, optimizer = training()
    guard = Guard(net, optimizer)
    assert not guard.allows(nan) and not guard.allows(nan)
    other = Guard(net, optimizer)
    other.load_state_dict(copy.deepcopy(guard.state_dict()))
    with pytest.warns(FtnPytorchWarning):
        other.allows(nan)
    assert (other.returns, other.skipped) == (1, 3)


def test_a_range_that_is_restored_to_nothing_lets_nothing_pass():
    guard, fresh = Guard(), Guard().state_dict()
    guard.learn_range(torch.zeros(2, 3))
    assert guard.outside(torch.ones(1, 3)).tolist() == [True] and guard.counts.tolist() == [1, 1, 1]
    guard.load_state_dict(fresh)
    assert guard.counts is None and guard.state_dict()["_range"]["low"] is None
    assert guard.outside(torch.zeros(2, 3)).tolist() == [True, True]
    guard.learn_range(torch.ones(2, 3))
    assert guard.outside(torch.zeros(1, 3)).tolist() == [True] and guard.counts.tolist() == [1, 1, 1]


def test_early_stopping():
    guard = Guard(patience=3, min_delta=0.1)
    assert [guard.score(value) for value in (1.0, 0.95, 0.8, 0.75, nan)] == [False] * 5
    assert guard.score(torch.tensor(0.71))
    assert guard.is_completed
    assert guard.best == 0.8
    assert not Guard().score(nan)


def test_rows_outside_of_what_was_learnt():
    guard = Guard()
    assert guard.outside(torch.zeros(2, 3)).tolist() == [True, True]
    guard.learn_range(torch.tensor([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]))
    guard.learn_range(torch.tensor([[0.5, -1.0, 0.0]]))
    x = torch.tensor([[0.5, 0.5, 0.5], [2.0, 0.0, 4.0], [0.0, -1.0, nan], [0.0, -2.0, 0.0]])
    assert guard.outside(x).tolist() == [False, True, True, True]
    assert guard.outside(x).tolist() == [False, True, True, True]
    assert guard.counts.tolist() == [2, 2, 4]


def test_inputs_that_do_not_fit_are_refused(fails):
    guard = Guard()
    guard.learn_range(torch.ones(2, 3))
    for function in (guard.learn_range, guard.outside):
        with fails("SHAPE", "(n, 3)"):
            function(torch.ones(2, 4))
    with fails("ARGUMENT", "not finite"):
        guard.learn_range(torch.full((1, 3), nan))
    assert guard.outside(torch.ones(1, 3)).tolist() == [False]


def test_a_state_goes_on_where_it_was(tmp_path):
    net, optimizer = training()
    guard = Guard(net, optimizer, every=3, tolerated=0, patience=4)
    for _ in range(11):
        step(net, optimizer, guard, torch.randn(8, 3))
        guard.score(1.0)
    guard.learn_range(torch.randn(9, 3))
    guard.outside(torch.randn(9, 3))
    torch.save([each.state_dict() for each in (net, optimizer, guard)], tmp_path / "state")
    other_net, other_optimizer = training()
    other = Guard(other_net, other_optimizer, every=3, tolerated=0, patience=4)
    for each, state in zip((other_net, other_optimizer, other), torch.load(tmp_path / "state", weights_only=True)):
        each.load_state_dict(state)
    assert other.is_completed
    assert torch.equal(other.counts, guard.counts)
    x = torch.randn(50, 3)
    assert torch.equal(other.outside(x), guard.outside(x))
    with pytest.warns(FtnPytorchWarning):
        assert guard.allows(nan) == other.allows(nan)
    assert same(numbers(net, optimizer), numbers(other_net, other_optimizer))
    assert other.returns == guard.returns


def test_the_state_of_another_network_is_refused(fails):
    net, optimizer = training()
    guard = Guard(net, optimizer)
    before = copy.deepcopy(guard.state_dict())
    with fails("FORMAT", "names or shapes"):
        guard.load_state_dict(Guard(torch.nn.Linear(3, 1), optimizer).state_dict())
    with fails("FORMAT", "2 objects"):
        Guard(net).load_state_dict(before)


@pytest.mark.parametrize("inside", [True, False])
def test_a_state_from_before_normalisers_kept_their_drift_is_taken(inside):
    net = torch.nn.Sequential(Normaliser(2), torch.nn.Linear(2, 1)) if inside else Normaliser(2)
    guard = Guard(net, every=1)
    (net[0] if inside else net).update(torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
    assert guard.allows(1.0)
    state = copy.deepcopy(guard.state_dict())
    for name in [name for name in state["_saved"][0] if name.endswith("drifted")]:
        del state["_saved"][0][name]
    other = torch.nn.Sequential(Normaliser(2), torch.nn.Linear(2, 1)) if inside else Normaliser(2)
    again = Guard(other, tolerated=0)
    again.load_state_dict(state)
    with pytest.warns(FtnPytorchWarning):
        assert not again.allows(nan)
    torch.testing.assert_close(dict(other.state_dict()), dict(net.state_dict()), equal_nan=True)
