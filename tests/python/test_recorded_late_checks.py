# SPDX-License-Identifier: MIT
"""Recordings that run without Python are compared with their functions once in a while."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording import comparison, late_checks  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

X = torch.arange(6.0).reshape(2, 3) - 2


@pytest.fixture
def often(monkeypatch):
    """Each tenth run is checked, however long it takes."""
    monkeypatch.setenv(late_checks.VARIABLE, "10")
    monkeypatch.setattr(late_checks, "_SHARE", 1e9)


def ready(function):
    """The function as it is recorded, and the numbers of its calls in which it runs itself."""
    apply, seen, calls = recorded(function), [], [0]
    inner = apply.recording._function

    def counted(*args):
        seen.append(calls[0])
        return inner(*args)

    def call(*args):
        calls[0] += 1
        if apply.recording.is_ready:
            apply.recording._function = counted
        return apply(*args)

    call.recording = apply.recording
    return call, seen


def test_a_hundredth_call_is_checked_and_one_of_a_thousand(monkeypatch):
    monkeypatch.setattr(late_checks, "_SHARE", 1e9)
    call, seen = ready(lambda x: x * 2)
    for _ in range(4000):
        call(X)
    assert len(seen) == 4 and seen[0] == 104
    assert all(1000 * place <= number < 1000 * (place + 1) for place, number in enumerate(seen) if place)


def test_checks_that_take_long_are_rare(monkeypatch):
    monkeypatch.setattr(late_checks, "_SHARE", 0.0)
    call, seen = ready(lambda x: x * 2)
    for _ in range(4000):
        call(X)
    assert len(seen) == 1


def test_none_is_checked_where_the_variable_says_so(monkeypatch):
    monkeypatch.setenv(late_checks.VARIABLE, "0")
    call, seen = ready(lambda x: x * 2)
    for _ in range(1200):
        call(X)
    assert not seen


def test_a_variable_that_is_no_number(monkeypatch):
    monkeypatch.setenv(late_checks.VARIABLE, "often")
    with pytest.warns(FtnPytorchWarning, match="FTN_PYTORCH_CHECK_EVERY='often' is no number of calls: one in 1000"):
        assert late_checks.every() == 1000


def test_what_no_rule_sees_is_told(often, monkeypatch):
    def step(x):
        return torch.nn.functional.relu(x)

    call, seen = ready(step)
    for _ in range(40):
        assert torch.equal(call(X), X.relu())
    monkeypatch.setattr(torch.nn.functional, "relu", torch.tanh)
    text = "has changed and was not seen, all that have run without Python since number .* in number .*, a result is "
    with pytest.warns(FtnPytorchWarning, match=f"step is not recorded: something that it uses {text}"):
        found = [torch.equal(call(X), X.tanh()) for _ in range(20)]
    assert all(found[found.index(True) :]) and not call.recording.is_ready


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_count_that_differs_is_told_by_its_name(often, is_alone):
    """At once, or, where another thread may have counted, when it differs again and again."""
    counts = {"n": 0}

    @recorded
    def step(x):
        counts["n"] += 1
        return x * 2

    for _ in range(12):
        step(X)
    inner = step.recording._function

    def counted_elsewhere(x):
        counts["n"] += 1  # as another thread does meanwhile
        return inner(x)

    step.recording._function = counted_elsewhere
    with ThreadPoolExecutor(1) as other:
        if not is_alone:
            other.submit(int).result()
        with pytest.warns(FtnPytorchWarning, match=r"in number \d+, counts\['n'\] is \d+, and \d+ from the recording"):
            for _ in range(60):
                step(X)
    assert not step.recording.is_ready


def trained(record):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    call, seen = ready(step) if record else (step, [])
    return [call(X).item() for _ in range(80)], seen, call


def test_a_step_is_made_once_in_a_call_that_is_checked(often):
    plain, _, _ = trained(False)
    found, seen, call = trained(True)
    assert found == plain and len(seen) > 5 and call.recording.is_ready


def test_what_two_threads_train_is_not_checked(often):
    weight = torch.zeros(3)

    def learn(x):
        weight.add_(x[0])

    call, seen = ready(learn)
    for _ in range(10):
        call(X)
    other = threading.Thread(target=call, args=(X,))
    other.start()
    other.join()
    for _ in range(60):
        call(X)
    assert len(seen) == 1, "the call that was to be checked is made as it is, and no other one"
    assert torch.equal(weight, 71 * X[0])


def test_a_function_that_fails_in_a_check_is_recorded_anew(often, monkeypatch):
    def step(x):
        return torch.nn.functional.relu(x)

    def fails(x):
        raise ArithmeticError("no")

    apply, relu = recorded(step), torch.nn.functional.relu
    for _ in range(20):
        apply(X)
    monkeypatch.setattr(torch.nn.functional, "relu", fails)
    with pytest.raises(ArithmeticError):
        for _ in range(20):
            apply(X)
    monkeypatch.setattr(torch.nn.functional, "relu", relu)
    assert not apply.recording.is_ready
    assert all(torch.equal(apply(X), X.relu()) for _ in range(12)) and apply.recording.is_ready


def test_where_memory_is_short_a_check_is_left_out(often, monkeypatch):
    call, seen = ready(lambda x: x * 2)
    for _ in range(10):
        call(X)

    def short(*_):
        raise MemoryError

    monkeypatch.setattr(comparison, "State", short)
    assert all(torch.equal(call(X), X * 2) for _ in range(40))
    assert len(seen) > 2 and call.recording.is_ready and not call.recording.obstacle


@pytest.mark.parametrize("failure", [MemoryError, torch.OutOfMemoryError])
def test_where_memory_ends_in_a_check_the_same_numbers_are_drawn_again(often, monkeypatch, failure):
    """The function that has failed had begun: what it changed and drew is undone, and it is called again."""
    dropout = torch.nn.functional.dropout
    monkeypatch.setattr(comparison.other_threads, "there_are", lambda: False)  # they may have drawn meanwhile

    def step(x):
        count.add_(1)
        return torch.nn.functional.dropout(x)

    def ends_once(x):
        dropout(x)
        monkeypatch.setattr(torch.nn.functional, "dropout", dropout)
        ended.append(1)
        raise failure

    found = []
    for record in (lambda function: function, recorded):
        count, apply, ended = torch.zeros(()), record(step), []
        torch.manual_seed(1)
        results = [apply(X) for _ in range(10)]
        if record is recorded:
            assert apply.recording.is_ready
            monkeypatch.setattr(torch.nn.functional, "dropout", ends_once)
        results += [apply(X) for _ in range(20)]
        found.append((results, count.item(), len(ended)))
    (plain, count_of_plain, _), (results, counted, ends) = found
    assert ends == 1 and counted == count_of_plain
    assert all(torch.equal(*pair) for pair in zip(plain, results, strict=True))
    assert apply.recording.is_ready and not apply.recording.obstacle


def test_large_tensors_are_not_copied(often, monkeypatch):
    monkeypatch.setattr(late_checks, "_MOST_BYTES", 11)
    weight = torch.ones(3)
    call, seen = ready(lambda x: x * weight)
    for _ in range(60):
        call(X)
    assert call.recording.is_ready and not seen


def test_others_that_train_meanwhile_are_not_blamed_on_the_function(often, monkeypatch):
    weight = torch.ones(3)
    call, seen = ready(lambda x: x * weight)
    for _ in range(10):
        call(X)
    changed = comparison.Surroundings.have_changed
    monkeypatch.setattr(comparison.Surroundings, "have_changed", lambda self: changed(self) or True)
    for _ in range(40):
        call(X)
    assert len(seen) > 2 and call.recording.is_ready and not call.recording.obstacle


def test_others_that_write_beside_what_it_writes_are_not_blamed_on_it(monkeypatch):
    """Into another row of the table, before the recording runs for comparison."""
    own, others = torch.ones(2, 3)
    beside, restore = others.numpy(), comparison.State.restore

    def disturbed(self):
        restore(self)
        beside[:] += 1

    def step(x):
        own.add_(x)
        return others * x

    call = recorded(step)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(comparison.State, "restore", disturbed)
        for _ in range(5):
            call(X[0])
    for _ in range(10):
        call(X[0])
    assert call.recording.is_ready and not call.recording.obstacle


def test_a_tolerance_refers_to_the_largest_value_so_far():
    """A loss near zero has no digits of its own."""
    one, two = torch.tensor(1e-14), torch.tensor(2e-14)
    assert not comparison.is_same(one, two, 1e-5) and comparison.is_same(one, two, 1e-5, largest=0.1)
    assert not comparison.is_same(one, torch.tensor(2e-6), 1e-5, largest=0.1)
    assert not comparison.is_same(1e-14, 2e-14, 1e-5) and comparison.is_same(1e-14, 2e-14, 1e-5, largest=0.1)
    assert not comparison.is_same(one, two, 0, largest=0.1)
