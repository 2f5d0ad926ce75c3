# SPDX-License-Identifier: MIT
"""Recorded functions that run as code of torch's compiler: what it computes, what is not compiled, and what is said."""

import copy
import os

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension", "code_of_these_tests")

TOLERANCE = 1e-5
CALLS = 8


@pytest.fixture(scope="module")
def code_of_these_tests(tmp_path_factory):
    """What is compiled once is loaded by the tests after that."""
    kept = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path_factory.mktemp("compiled"))
    yield
    if kept is None:
        del os.environ["TORCHINDUCTOR_CACHE_DIR"]
    else:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = kept


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 24), torch.nn.Tanh(), torch.nn.Linear(24, 3))


def data(call, rows=16):
    generator = torch.Generator().manual_seed(call)
    x = torch.randn(rows, 6, generator=generator)
    return x, x[:, :3].sin()


def step_of(net, optimizer, after=lambda: None):
    def step(x, target):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), target)
        loss.backward()
        optimizer.step()
        after()
        return loss

    return step


def replay_of(function):
    (variant,) = function.recording._ready
    return variant.runner


def compile_now(function, args_of=data):
    """Calls until the function runs as compiled code."""
    for call in range(CALLS):
        function(*args_of(call))
    assert not function.recording.obstacle
    assert replay_of(function).wait(900)
    for call in range(CALLS, 2 * CALLS):
        function(*args_of(call))
    assert replay_of(function).is_compiled()


def is_near(one, other):
    return float((one - other).abs().max()) <= 20 * TOLERANCE * float(other.abs().max())


OPTIMIZERS = {
    "adam, fused": lambda p: torch.optim.Adam(p, lr=1e-2, fused=True),
    "adamw, fused": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1, fused=True, maximize=False),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "sgd, fused": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, fused=True),
}


QUICK = ("adam", "adam, fused")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in OPTIMIZERS]
)
def test_steps_are_those_of_the_script(name):
    net = network()
    optimizer = OPTIMIZERS[name](net.parameters())
    other = copy.deepcopy(net)
    other_optimizer = OPTIMIZERS[name](other.parameters())
    step, expected = recorded(step_of(net, optimizer), compiled=True), step_of(other, other_optimizer)
    compile_now(step)
    for call in range(2 * CALLS):
        expected(*data(call))
    for call in range(30):
        if call == 15:
            for each in (optimizer, other_optimizer):
                each.param_groups[0]["lr"] = 3e-3
        loss, wanted = step(*data(call)), expected(*data(call))
        assert is_near(loss, wanted.detach())
    assert replay_of(step).is_compiled()
    for one, two in zip(net.parameters(), other.parameters()):
        assert is_near(one.detach(), two.detach()) and is_near(one.grad, two.grad)
    for one, two in zip(optimizer.state.values(), other_optimizer.state.values()):
        assert all(is_near(one[key], two[key]) for key in one if isinstance(one[key], torch.Tensor))


@pytest.mark.slow
def test_predictions_of_several_shapes():
    net = network()
    predict = recorded(lambda x: net(x).detach(), compiled=True)
    for rows in (4, 9):
        for call in range(CALLS):
            predict(data(call, rows)[0])
        assert predict.recording._ready[0].runner.wait(900)
    for rows in (4, 9) * (CALLS // 2):
        for call in range(4):
            x, _ = data(call, rows)
            assert is_near(predict(x), net(x).detach())
    assert [variant.runner.is_compiled() for variant in predict.recording._ready] == [True, True]


def test_what_a_step_counts_and_leaves_is_there():
    net = network()
    seen = {"steps": 0}

    def count():
        seen["steps"] += 1

    step = recorded(step_of(net, torch.optim.SGD(net.parameters(), lr=1e-2, fused=True), count), compiled=True)
    compile_now(step)
    before = seen["steps"]
    for call in range(5):
        step(*data(call))
    assert seen["steps"] == before + 5 and replay_of(step).is_compiled()


@pytest.mark.slow
def test_gradients_are_added_up():
    net = network()

    def add(x, target):
        torch.nn.functional.mse_loss(net(x), target).backward()

    compiled = recorded(add, compiled=True)
    for call in range(2):  # from then on there are gradients
        add(*data(call))
    compile_now(compiled)
    kept = [each.grad.clone() for each in net.parameters()]
    compiled(*data(3))
    found = [each.grad.clone() for each in net.parameters()]
    for each, gradient in zip(net.parameters(), kept):
        each.grad.copy_(gradient)
    add(*data(3))
    assert all(is_near(one, each.grad) for one, each in zip(found, net.parameters()))


@pytest.mark.slow
def test_arrays_that_share_memory_with_what_is_written():
    state = torch.zeros(8)

    @recorded(compiled=True)
    def shift(x):
        state.add_(x)
        return state * 2 + x

    compile_now(shift, lambda call: (torch.full((8,), 0.5 + call),))
    state.fill_(1.0)
    assert shift(state).tolist() == [6.0] * 8  # the second operand of the sum is what the first one has written


def test_views_of_one_memory():
    flat = torch.linspace(0, 1, 24)
    weight, bias = flat[:18].view(3, 6), flat[18:21]

    @recorded(compiled=True)
    def step(x, target):
        found = x @ weight.t() + bias
        weight.sub_(1e-3 * (found - target).t() @ x)
        flat[21:].copy_(found.mean(0))
        return found

    compile_now(step)
    before = flat.clone()
    x, target = data(1)
    found = step(x, target)
    wanted = x @ before[:18].view(3, 6).t() + before[18:21]
    assert is_near(found, wanted) and is_near(flat[21:], wanted.mean(0))
    assert (
        is_near(flat[:18], before[:18] - (1e-3 * (wanted - target).t() @ x).reshape(-1))
        and replay_of(step).is_compiled()
    )


def test_what_draws_random_numbers_goes_on_recorded():
    net = network()
    drop = recorded(lambda x: torch.dropout(net(x), 0.5, True).detach(), compiled=True)
    with pytest.warns(FtnPytorchWarning, match=r"stays recorded and is not compiled: aten.* draws random numbers"):
        for call in range(CALLS):
            drop(data(call)[0])
    assert drop.recording.is_ready and not replay_of(drop).is_compiled()


@pytest.mark.slow
def test_results_that_share_memory_still_do():
    net = network()

    def both(x):
        y = net(x).detach() * 3
        return y, y[:2], net[0].bias.detach()

    function = recorded(both, compiled=True)
    for call in range(CALLS):
        function(data(call)[0])
    assert replay_of(function).wait(900)
    for call in range(CALLS):
        whole, part, bias = function(data(call)[0])
        assert is_near(whole, 3 * net(data(call)[0]).detach())
        whole.fill_(7.0)
        assert part.eq(7.0).all() and bias.data_ptr() == net[0].bias.data_ptr()


def test_code_that_differs_by_more_than_it_may_is_not_used():
    net = network()
    step = recorded(step_of(net, torch.optim.Adam(net.parameters(), fused=True)), compiled=True)
    for call in range(CALLS):
        step(*data(call))
    replay = replay_of(step)
    replay._tolerance = 0.0
    assert replay.wait(900)
    with pytest.warns(FtnPytorchWarning, match="a result is .*more than tolerance=0 of the largest"):
        for call in range(CALLS):
            step(*data(call))
    other = network()
    expected = step_of(other, torch.optim.Adam(other.parameters(), fused=True))
    for call in (*range(CALLS), *range(CALLS)):
        expected(*data(call))
    assert all(torch.equal(one, two) for one, two in zip(net.parameters(), other.parameters()))


def test_a_machine_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    net = network()
    predict = recorded(lambda x: net(x).detach() + 1, compiled=True)
    with pytest.warns(FtnPytorchWarning, match="stays recorded and is not compiled: InvalidCxxCompiler"):
        for call in range(CALLS):
            predict(data(call)[0])
        assert replay_of(predict).wait(300)
        predict(data(0)[0])
    assert torch.equal(predict(data(0)[0]), net(data(0)[0]).detach() + 1)


def test_a_folder_in_which_others_may_write(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    (tmp_path / f"ftn_pytorch_{os.getuid()}").mkdir()
    (tmp_path / f"ftn_pytorch_{os.getuid()}").chmod(0o777)
    net = network()
    predict = recorded(lambda x: net(x).detach() + 2, compiled=True)
    with pytest.warns(
        FtnPytorchWarning, match="stays recorded and is not compiled: .*others may write there: chmod go-w"
    ):
        for call in range(2 * CALLS):
            predict(data(call)[0])
            assert call < CALLS or replay_of(predict).wait(60)


@pytest.mark.slow
def test_a_late_check_compares_within_the_tolerance(monkeypatch):
    monkeypatch.setenv("FTN_PYTORCH_CHECK_EVERY", "20")
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)
    step = recorded(step_of(net, optimizer), compiled=True)
    compile_now(step)
    for call in range(100):
        step(*data(call))
    assert replay_of(step).is_compiled() and not step.recording.obstacle
    # one batch, until nothing is left of the loss but what rounding makes
    for _ in range(4000):
        loss = step(*data(0))
    assert loss < 1e-7 and replay_of(step).is_compiled() and not step.recording.obstacle
