# SPDX-License-Identifier: MIT
"""Steps of optimizers are recorded with their numbers, and with what they count in Python, bit for bit."""

import pytest

torch = pytest.importorskip("torch")

from devices import device  # noqa: E402, F401
from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402
from recorded_problem import CALLS, Problem, assert_replays, assert_same  # noqa: E402

functional = torch.nn.functional

pytestmark = pytest.mark.usefixtures("extension", "device")


OPTIMIZERS = {
    "SGD": {"lr": 0.1},
    "SGD, momentum": {"lr": 0.1, "momentum": 0.9, "dampening": 0.1},
    "SGD, Nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "SGD, fused": {"lr": 0.1, "momentum": 0.9, "fused": True},
    "SGD, foreach, maximize": {"lr": 0.01, "momentum": 0.9, "foreach": True, "maximize": True},
    "Adam, fused": {"lr": 1e-3, "fused": True},
    "Adam, equal numbers": {"lr": 1e-3, "eps": 1e-3, "weight_decay": 1e-3, "fused": True},
    "Adam, amsgrad": {"lr": 1e-3, "amsgrad": True, "fused": True},
    "AdamW, fused": {"lr": 1e-3, "weight_decay": 0.1, "fused": True},
    "RMSprop": {"lr": 1e-3},
    "RMSprop, centered": {"lr": 1e-3, "momentum": 0.9, "centered": True, "weight_decay": 0.01},
    "Adagrad, fused": {"lr": 0.01, "lr_decay": 0.01, "fused": True},
    "Adam": {"lr": 1e-3, "weight_decay": 1e-3},
    "Adam, equal numbers, one by one": {"lr": 1e-3, "eps": 1e-3, "weight_decay": 1e-3},
    "Adam, amsgrad, maximize": {"lr": 1e-3, "amsgrad": True, "maximize": True},
    "Adam, foreach": {"lr": 1e-3, "foreach": True},
    "Adam, no momentum": {"lr": 1e-3, "betas": (0.0, 0.9)},
    "AdamW": {"lr": 1e-3, "weight_decay": 0.1},
    "AdamW, foreach": {"lr": 1e-3, "foreach": True, "amsgrad": True},
    "NAdam": {"lr": 1e-3},
    "NAdam, decoupled": {"lr": 1e-3, "weight_decay": 0.1, "decoupled_weight_decay": True},
    "NAdam, foreach": {"lr": 1e-3, "foreach": True},
    "RAdam": {"lr": 1e-3},
    "RAdam, decoupled": {"lr": 1e-3, "weight_decay": 0.1, "decoupled_weight_decay": True},
    "Adamax": {"lr": 1e-3, "weight_decay": 0.1},
    "Adamax, foreach": {"lr": 1e-3, "foreach": True},
    "Adagrad": {"lr": 0.01, "lr_decay": 0.01},
    "Adagrad, foreach": {"lr": 0.01, "foreach": True},
    "Adadelta": {"lr": 0.9},
    "Adadelta, weight decay": {"lr": 0.9, "weight_decay": 0.01},
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_with_a_schedule(name, device):  # noqa: F811
    if (device, name) == ("cuda", "Adagrad, fused"):
        pytest.skip("torch has no such kernel for GPUs")
    kind, settings = getattr(torch.optim, name.split(",")[0]), OPTIMIZERS[name]
    assert_replays(optimizer=lambda parameters: kind(parameters, **settings))


UNRECORDED = {
    "ASGD": ({}, "in the step of ASGD is given what depends on alpha"),
    "Adafactor": ({}, "the step of Adafactor takes numbers out of its state"),
    "Rprop": ({}, "in a way that is not known"),
}


@pytest.mark.parametrize("name", UNRECORDED)
def test_optimizers_that_say_why_not(name, device):  # noqa: F811
    if device != "cpu":
        pytest.skip("other operators, and other words")
    settings, why = UNRECORDED[name]
    kind = getattr(torch.optim, name)
    with pytest.warns(FtnPytorchWarning, match=why):
        assert_replays(is_ready=False, optimizer=lambda parameters: kind(parameters, **settings))


COUNTED = ("Adam", "NAdam", "RAdam", "Adamax", "Adagrad")


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("steps", [40, 5000])
def test_counts_of_steps_are_read_in_each_call(name, steps):
    """Where powers of the betas have vanished, they still depend on the count; each parameter has one of its own."""

    def run(record):
        problem = Problem(record, lambda p: getattr(torch.optim, name)(p, lr=1e-3))
        problem.run(1)
        for place, state in enumerate(problem.optimizer.state.values()):
            state["step"].fill_(steps + place)
        losses = problem.run(8)
        is_ready = record and problem.step.recording.is_ready
        for place, state in enumerate(problem.optimizer.state.values()):
            state["step"].fill_(3 + 5 * place)
        return losses + problem.run(12), is_ready, problem

    (one, _, plain), (other, is_ready, replayed) = run(False), run(True)
    assert one == other and is_ready, replayed.step.recording.obstacle
    assert_same(plain.tensors(), replayed.tensors())


AVERAGES = {
    "mean of the weights": {},
    "exponential": {"multi_avg_fn": torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)},
    "of each one": {"avg_fn": torch.optim.swa_utils.get_ema_avg_fn(0.9), "use_buffers": True},
}


@pytest.mark.parametrize("name", AVERAGES)
@pytest.mark.filterwarnings("ignore:.*a number is taken out of a tensor")
def test_averages_of_weights(name, device):  # noqa: F811
    """They count in a tensor, and ask it whether it is zero."""

    def run(record):
        problem = Problem(False, lambda p: torch.optim.Adam(p, lr=1e-3))
        averaged = torch.optim.swa_utils.AveragedModel(problem.net, **AVERAGES[name])
        net, made = problem.net, problem.optimizer

        def step(x, y):
            made.zero_grad()
            loss = functional.mse_loss(net(x), y)
            loss.backward()
            made.step()
            averaged.update_parameters(net)
            return loss

        problem.step = recorded(step) if record else step
        losses = problem.run()
        averaged.n_averaged.fill_(0)
        return losses + problem.run(10), [*averaged.state_dict().values()], problem.step

    (one, weights, _), (other, same, step) = run(False), run(True)
    assert one == other
    assert_same(weights, same)
    # the mean gives a kernel of the GPU one number more, which is taken out of the count
    assert step.recording.is_ready == ((name, device) != ("mean of the weights", "cuda")), step.recording.obstacle


class Spectral(torch.nn.Module):
    """A layer of a Fourier neural operator: its weights are complex."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(0.1 * torch.randn(2, 2, 5, dtype=torch.cfloat))

    def forward(self, x):
        modes = torch.einsum("bix,iox->box", torch.fft.rfft(x)[..., :5], self.weight)
        return torch.fft.irfft(modes, n=x.size(-1)) + x


@pytest.mark.parametrize("name", ["Adam", "Adam, foreach", "AdamW", "NAdam", "RAdam", "SGD, momentum"])
def test_complex_parameters(name):
    def run(record):
        torch.manual_seed(0)
        net = Spectral()
        made = getattr(torch.optim, name.split(",")[0])(net.parameters(), **OPTIMIZERS[name])

        def step(x):
            made.zero_grad()
            loss = (net(x) - x.roll(1, -1)).square().mean()
            loss.backward()
            made.step()
            return loss

        step = recorded(step) if record else step
        return [step(torch.randn(3, 2, 16)).item() for _ in range(CALLS)], net.weight.detach(), step

    (one, weight, _), (other, same, step) = run(False), run(True)
    assert one == other and torch.equal(weight, same)
    assert step.recording.is_ready, step.recording.obstacle


def test_a_learning_rate_that_is_a_tensor():
    assert_replays(optimizer=lambda p: torch.optim.Adam(p, lr=torch.tensor(1e-3), fused=True))


def test_groups_with_numbers_of_their_own():
    def make(parameters):
        parameters = list(parameters)
        groups = [{"params": parameters[:2], "lr": 0.01}, {"params": parameters[2:], "weight_decay": 0.01}]
        return torch.optim.AdamW(groups, lr=1e-3, fused=True)

    assert_replays(optimizer=make)
