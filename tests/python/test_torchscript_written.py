# SPDX-License-Identifier: MIT
"""TorchScript models as they are written: training and derivatives after predictions, which torch.jit rewrites."""

import warnings

import pytest

from ftn_pytorch import _embed
from ftn_pytorch.system import private_names

torch = pytest.importorskip("torch")

FORWARD, TRAIN = "ftn_pytorch_forward", "ftn_pytorch_train"
X = torch.sin(torch.arange(48.0)).reshape(16, 3)
GOAL = torch.cos(torch.arange(16.0)).reshape(16, 1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(3, 8), torch.nn.Linear(8, 1)

    def forward(self, x, scale: float = 1.0):
        return self.last(torch.tanh(self.first(x))) * scale

    @torch.jit.export
    def squares(self, x):
        return torch.tanh(self.first(x)).pow(2)


def saved(net, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(net), folder / "net.pt")
    return _embed.load(1, str(folder / "net.pt"), {}, {})


def call(runner, name, *args, **named):
    return _embed.bind(runner, name, 0)[0](*args, **named)


def predicted(net, folder):
    """A runner whose methods torch.jit has rewritten, also for gradients."""
    runner = saved(net, folder)
    for each in (X, X, X.clone().requires_grad_(), X.clone().requires_grad_()):
        call(runner, FORWARD, each)
        call(runner, "squares", each)
    return runner


@pytest.mark.parametrize("seed", range(5))
def test_training_after_predictions_is_that_of_torch(seed, tmp_path):
    torch.manual_seed(seed)
    net = Net()
    runner = predicted(net, tmp_path)
    call(runner, "ftn_pytorch_create_optimizer_adam", 0.01)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, fused=True)
    for named in ({}, {}, {"scale": 2.0}):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(X, **named), GOAL)
        loss.backward()
        optimizer.step()
        assert call(runner, TRAIN, x=X, target=GOAL, **named) == (False, loss.item())
        assert torch.equal(call(runner, FORWARD, X), net(X))


@pytest.mark.parametrize(("function", "method"), [(FORWARD, "forward"), ("squares", "squares")])
def test_derivatives_after_predictions_are_those_of_torch(function, method, tmp_path):
    for seed in range(5):
        torch.manual_seed(seed)
        net = Net()
        runner = predicted(net, tmp_path)
        leaf = X.clone().requires_grad_()
        result = getattr(net, method)(leaf)
        direction = torch.randn_like(result)
        (wanted,) = torch.autograd.grad(result, leaf, direction)
        assert torch.equal(call(runner, f"ftn_pytorch_adjoint:1:{function}", direction, X)[0], wanted)
        _, tangent = torch.func.jvp(getattr(net, method), (X,), (X.flip(0),))
        assert torch.equal(call(runner, f"ftn_pytorch_tangent:1:{function}", X.flip(0), X)[0], tangent)


def test_training_goes_on_where_torch_has_no_name_for_it(monkeypatch, tmp_path):
    gone = private_names._SCRIPT_FUNCTION._replace(name="create_function_of_old")
    monkeypatch.setattr(private_names, "_SCRIPT_FUNCTION", gone)
    net = Net()
    runner = predicted(net, tmp_path)
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    loss = torch.nn.functional.mse_loss(net(X), GOAL).item()
    assert call(runner, TRAIN, X, GOAL)[1] == pytest.approx(loss)


def test_hooks_of_the_model_take_part_in_training(tmp_path):
    class Hooked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x):
            return self.layer(x)

    def twice(self, input: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
        return 2 * output

    net = Hooked()
    net.register_forward_hook(twice)
    runner = saved(net, tmp_path)
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    loss = torch.nn.functional.mse_loss(net(X), GOAL).item()
    assert call(runner, TRAIN, X, GOAL) == (False, loss)


def test_a_model_that_takes_a_dictionary_is_trained_by_names(tmp_path):
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, inputs: dict[str, torch.Tensor]):
            return self.layer(inputs["x"] + inputs["y"])

    net = Named()
    runner = saved(net, tmp_path)
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    loss = torch.nn.functional.mse_loss(net({"x": X, "y": X}), GOAL).item()
    assert call(runner, TRAIN, x=X, y=X, target=GOAL) == (False, loss)


@pytest.mark.parametrize(
    ("name", "args", "named", "status"),
    [
        (FORWARD, (), {}, "SIGNATURE"),
        (FORWARD, (X, 1.0, X), {}, "SIGNATURE"),
        (FORWARD, (X,), {"x": X}, "SIGNATURE"),
        ("squares", (X, X), {}, "SIGNATURE"),
        ("ftn_pytorch_adjoint:1:squares", (X, X, X), {}, "SIGNATURE"),
        (TRAIN, (X, 1.0, GOAL, GOAL), {}, "SIGNATURE"),
        (TRAIN, (X, 1.0), {}, "ARGUMENT"),
        (FORWARD, ("text",), {}, "PYTHON"),
    ],
)
def test_a_later_call_that_does_not_fit_is_told_as_the_first(name, args, named, status, tmp_path):
    runner = predicted(Net(), tmp_path)
    call(runner, "ftn_pytorch_create_optimizer_sgd", 0.1)
    with pytest.raises(Exception) as raised:
        call(runner, name, *args, **named)
    assert _embed.describe_error(raised.value, "")[0] == status
