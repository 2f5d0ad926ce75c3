# SPDX-License-Identifier: MIT
"""Recorded functions give the numbers of the functions as they are, bit for bit, and notice what changes."""

import copy

import pytest

torch = pytest.importorskip("torch")

from devices import device  # noqa: E402, F401
from ftn_pytorch import Checkpoint, recorded  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402
from recorded_problem import Problem, assert_replays, assert_same  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension", "device")

functional = torch.nn.functional
LOSSES = {
    "mse": (functional.mse_loss, None),
    "l1": (functional.l1_loss, None),
    "smooth l1": (functional.smooth_l1_loss, None),
    "huber": (functional.huber_loss, None),
    "binary cross entropy": (functional.binary_cross_entropy_with_logits, lambda: torch.rand(7, 3)),
    "cross entropy": (functional.cross_entropy, lambda: torch.randint(3, (7,))),
    "negative log likelihood": (lambda x, y: functional.nll_loss(x.log_softmax(1), y), lambda: torch.randint(3, (7,))),
    "poisson": (functional.poisson_nll_loss, lambda: torch.rand(7, 3)),
    "divergence": (lambda x, y: functional.kl_div(x.log_softmax(1), y), lambda: torch.rand(7, 3).softmax(1)),
    "gaussian": (lambda x, y: functional.gaussian_nll_loss(x[:, :1], y[:, :1], x[:, 1:2].exp()), None),
    "cosine": (lambda x, y: functional.cosine_embedding_loss(x, y, x.new_ones(7)), None),
    "soft margin": (functional.soft_margin_loss, lambda: torch.randint(2, (7, 3)) * 2.0 - 1),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    loss, targets = LOSSES[name]
    settings = {"targets": targets} if targets else {}
    if name == "gaussian" and torch.get_default_device().type == "cuda":  # compares numbers of the variance on the host
        with pytest.warns(FtnPytorchWarning, match="a number is taken out of a tensor"):
            assert_replays(is_ready=False, loss=loss, **settings)
    else:
        assert_replays(loss=loss, **settings)


nn = torch.nn
LAYERS = {
    "dropout": lambda: [nn.Dropout(0.3)],
    "batch norm": lambda: [nn.BatchNorm1d(8)],
    "layer norm": lambda: [nn.LayerNorm(8)],
    "relu": lambda: [nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Sigmoid()],
    "in place": lambda: [nn.Linear(8, 8), nn.ReLU(inplace=True), nn.GELU(), nn.SiLU()],
    "convolution": lambda: [nn.Unflatten(1, (1, 8)), nn.Conv1d(1, 2, 3, padding=1), nn.MaxPool1d(2), nn.Flatten()],
    "recurrent": lambda: [nn.Unflatten(1, (2, 4)), nn.GRU(4, 4, batch_first=True), First(), nn.Flatten()],
    "attention": lambda: [nn.Unflatten(1, (2, 4)), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), nn.Flatten()],
}


class First(nn.Module):
    def forward(self, pair):
        return pair[0]


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, device):  # noqa: F811
    assert_replays(layers=LAYERS[name])


def test_clipped_gradients_and_noise():
    def run(record):
        problem = Problem(False)
        net, made = problem.net, problem.optimizer

        def step(x, y):
            made.zero_grad()
            loss = ((net(x + 0.01 * torch.randn_like(x)) - y) ** 2).mean() + 1e-4 * sum(
                p.square().sum() for p in net.parameters()
            )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            made.step()
            return loss

        problem.step = recorded(step) if record else step
        return problem.run(), problem.tensors(), problem

    plain, replayed = run(False), run(True)
    assert plain[0] == replayed[0]
    assert_same(plain[1], replayed[1])
    assert replayed[2].step.recording.is_ready


def test_gradients_that_add_up_over_calls():
    def run(record):
        problem = Problem(False)
        net, made = problem.net, problem.optimizer

        def collect(x, y):
            loss = functional.mse_loss(net(x), y)
            loss.backward()
            return loss

        collect = recorded(collect) if record else collect
        losses = []
        torch.manual_seed(7)
        for call in range(40):
            losses.append(collect(torch.randn(7, 5), torch.randn(7, 3)).item())
            if call % 4 == 3:
                made.step()
                made.zero_grad(set_to_none=False)
        return losses, problem.tensors(), collect

    plain, replayed = run(False), run(True)
    assert plain[0] == replayed[0]
    assert_same(plain[1], replayed[1])
    assert replayed[2].recording.is_ready


def test_calls_before_between_and_after_are_mixed_freely():
    plain, replayed = Problem(False), Problem(True)
    as_it_is, recording = replayed.step.__wrapped__, replayed.step
    expected = plain.run() + plain.run(30)
    found = replayed.run()
    assert recording.recording.is_ready
    calls = iter(range(30))
    replayed.step = lambda x, y: (recording if next(calls) % 3 else as_it_is)(x, y)
    assert found + replayed.run(30) == expected
    assert_same(plain.tensors(), replayed.tensors())


def test_what_others_write_is_seen():
    replayed, plain = Problem(True), Problem(False)
    assert replayed.run() == plain.run()
    for problem in (replayed, plain):
        with torch.no_grad():
            problem.net[0].weight.mul_(0.5)
        problem.net.load_state_dict({name: value + 1 for name, value in problem.net.state_dict().items()})
        problem.optimizer.param_groups[0]["lr"] = 0.05
    assert replayed.step.recording.is_ready
    assert replayed.run(5) == plain.run(5)


REPLACED = {
    "parameter": lambda p: setattr(p.net[0], "weight", nn.Parameter(torch.full((8, 5), 0.1))),
    "assigned": lambda p: p.net.load_state_dict(copy.deepcopy(p.net.state_dict()), assign=True),
    "memory": lambda p: setattr(p.net[0].weight, "data", torch.full((8, 5), 0.1)),
    "layer": lambda p: p.net.__setitem__(1, nn.ReLU()),
    "mode": lambda p: p.net.eval(),
    "state": lambda p: p.optimizer.load_state_dict(copy.deepcopy(p.optimizer.state_dict())),
    "zero": lambda p: p.optimizer.param_groups[0].__setitem__("momentum", 0),
    "gradient": lambda p: p.optimizer.zero_grad(),
}


@pytest.mark.parametrize("name", REPLACED)
def test_what_is_replaced_is_noticed(name):
    made = [Problem(record, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)) for record in (False, True)]
    losses = []
    for problem in made:
        before = problem.run()
        REPLACED[name](problem)
        losses.append((before, problem.run(), problem.net(torch.ones(1, 5)).tolist()))
    assert losses[0] == losses[1]
    assert made[1].step.recording.is_ready


def test_a_checkpoint_in_the_middle_goes_on_to_the_same_numbers(tmp_path):
    def make():
        problem = Problem(True, lambda p: torch.optim.Adam(p, lr=1e-3, fused=True))
        kept = Checkpoint({"net": problem.net, "optimizer": problem.optimizer, "schedule": problem.schedule})
        return problem, kept

    problem, kept = make()
    problem.run()
    kept.save(str(tmp_path / "file.ckpt"))
    expected = problem.run()
    again, kept = make()
    again.run(9)
    assert again.step.recording.is_ready
    kept.restore(str(tmp_path / "file.ckpt"))
    assert again.run() == expected
    assert again.step.recording.is_ready
    assert_same(problem.tensors(), again.tensors())


@pytest.mark.parametrize("steps", [4000, pytest.param(20000, marks=pytest.mark.slow)])
def test_memory_stays_flat(steps, device):  # noqa: F811
    if device != "cpu":
        pytest.skip("memory of the host")
    problem = Problem(True, lambda p: torch.optim.Adam(p, lr=1e-3, fused=True))
    x, y = torch.randn(7, 5), torch.randn(7, 3)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(steps // 10):
        problem.step(x, y)
    # What grows with the steps grows in each quarter; other tests and the allocator do not
    sizes = [resident()]
    for _ in range(4):
        for _ in range(steps // 4):
            problem.step(x, y)
        sizes.append(resident())
    assert problem.step.recording.is_ready
    assert min(after - before for before, after in zip(sizes, sizes[1:])) < steps // 4 * 200
