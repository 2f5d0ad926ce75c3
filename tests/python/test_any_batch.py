# SPDX-License-Identifier: MIT
"""One recording for any batch size gives what the script gives, bit for bit, or says what is in the way."""

import pytest

from ftn_pytorch import __main__
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.opening import open_runner

torch = pytest.importorskip("torch")

from ftn_pytorch.saved import any_batch  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

SCRIPT = """
import math, torch
from torch import nn
F = torch.nn.functional
torch.manual_seed(1)
net = {net}
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)
def ftn_pytorch_forward(x):
    with torch.no_grad():
        return {forward}
def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
    return False, loss
"""
MSE = "F.mse_loss(net(x), target)"
# network, prediction, loss, shapes of input and target
CASES = {
    "mlp": ("nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))", "net(x)", MSE, "8x4", "8x3"),
    "dropout": (
        "nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 3))",
        "net(x)",
        "F.huber_loss(net(x), target)",
        "8x4",
        "8x3",
    ),
    "conv": (
        "nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3))",
        "net(x)",
        "F.mse_loss(net(x), target, reduction='sum') / target.numel()",
        "8x1x6x6",
        "8x3",
    ),
    "attention": (
        "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)",
        "net(x).mean(1)",
        "F.mse_loss(net(x).mean(1), target)",
        "8x5x8",
        "8x8",
    ),
    "sizes": (
        "nn.Linear(4, 3)",
        "net(x) / x.shape[0] * torch.arange(x.shape[0]).unsqueeze(1)",
        "((net(x) - target) ** 2).sum() * (1.0 / x.shape[0])",
        "8x4",
        "8x3",
    ),
    "columns": ("nn.Linear(4, 1)", "net(x).squeeze(-1)", "F.l1_loss(net(x).squeeze(-1), target)", "8x4", "8"),
    "rows": (
        "nn.Linear(4, 3)",
        "x @ x.T",
        "(net(torch.cat([x, x.flip(0)]))[: x.shape[0]] - target).abs().mean()",
        "8x4",
        "8x3",
    ),
}
REFUSED = {
    "root": (
        "net(x) / math.sqrt(x.shape[0])",
        "aten::div: 2.8284271247461903 and 3.0 do not follow from the batch size",
    ),
    "half": ("net(x[: x.shape[0] // 2])", "aten::slice, is given something else with a batch of 19"),
    "branch": ("net(x) if x.shape[0] > 16 else net(x) * 2", "the recording is another one with a batch of 19"),
}


@pytest.fixture
def export(write, tmp_path, capsys):
    """export(net, forward, loss, inputs, targets, *options): script, file, and what was written."""

    def export(net, forward, loss, inputs, targets, *options):
        script = write("net_of_a_batch.py", SCRIPT.format(net=net, forward=forward, loss=loss))
        output = str(tmp_path / "net.ftr")
        shapes = ["--input", inputs, "--target", targets]
        assert __main__.main(["export", script, "--to", "recording", *shapes, "--output", output, *options]) == 0
        captured = capsys.readouterr()
        return script, output, captured.out + captured.err

    return export


def compare(script, output, inputs, targets, sizes):
    """The losses and predictions of some steps, and the state at last, of script and file."""
    from ftn_pytorch import load_recording

    shapes = [tuple(map(int, shape.split("x")[1:])) for shape in (inputs, targets)]
    for rows in sizes:
        runner = open_runner(script, {}, {})
        names, saved = vars(runner._module), load_recording(output)
        numbers, random = torch.Generator().manual_seed(rows), torch.get_rng_state()
        for _ in range(3):
            x, target = (torch.randn(rows, *shape, generator=numbers) for shape in shapes)
            found = []
            for train, forward in (
                (names["ftn_pytorch_train"], names["ftn_pytorch_forward"]),
                (saved.train, saved.forward),
            ):
                torch.set_rng_state(random)
                found.append((train(x, target)[1].detach(), forward(x), torch.get_rng_state()))
            random = found[0][2]
            assert all(map(torch.equal, *found)), f"{rows} rows"
        for name, value in names["net"].state_dict().items():
            assert torch.equal(value, saved.arrays[f"net/{name}"])


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_the_script(export, case):
    script, output, told = export(*CASES[case])
    assert told.count("any batch size") == 2 and "FAILED" not in told, told
    compare(script, output, *CASES[case][3:], (1, 2, 3, 65, 300))


@pytest.mark.parametrize(
    "forward, size",
    [
        ("torch.cdist(x, x) @ x", 2),
        ("torch.linalg.multi_dot([x, x.t(), x, torch.eye(4)])", 2),
        ("torch.cat([net(rows) for rows in x.split(256)])", 257),
        ("net(x) * (2.0 if x.shape[0] > 500 else 1.0)", 512),
    ],
)
def test_what_torch_or_the_script_decide_by_the_size_is_told(export, forward, size):
    script, output, told = export("nn.Linear(4, 3)", forward, MSE, "32x4", "32x3")
    assert f"ftn_pytorch_forward: for a batch of 32 only, because a batch of {size} computes something else" in told
    with pytest.raises(FtnPytorchError, match=r"its recordings take: x float32 \(32, 4\)"):
        compare(script, output, "32x4", "32x3", (33,))
    compare(script, output, "32x4", "32x3", (32,))


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_follow_from_the_size_is_told(export, case):
    forward, reason = REFUSED[case]
    script, output, told = export("nn.Linear(4, 3)", forward, MSE, "8x4", "8x3")
    assert "ftn_pytorch_forward: for a batch of 8 only, because " in told and reason in told
    with pytest.raises(FtnPytorchError, match=r"is given float32 \(9, 4\); its recordings take: x float32 \(8, 4\)"):
        compare(script, output, "9x4", "9x3", (9,))


def test_sizes_may_be_given(export):
    net = "nn.Linear(4, 3)"
    script, output, told = export(net, REFUSED["half"][0], MSE, "8x4", "8x3", "--batch", "6", "--batch", "32")
    assert "batches of 6, 32" in told
    compare(script, output, "8x4", "8x3", (6, 32))


def test_a_batch_of_one_that_the_script_refuses_is_refused(export):
    net = "nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))"
    script, output, told = export(net, "net(x)", MSE, "8x4", "8x3")
    assert "any batch size from 2 on" in told
    compare(script, output, "8x4", "8x3", (2, 33))
    from ftn_pytorch import load_recording

    with pytest.raises(FtnPytorchError) as failure:
        load_recording(output).train(torch.zeros(1, 4), torch.zeros(1, 3))
    assert failure.value.status == "SHAPE"


@pytest.mark.parametrize("one, other", [(0.0, -0.0), (1, 1.0), ([1.0], (1.0, 2.0)), (1.0, float("nan"))])
def test_values_are_compared_bit_for_bit(one, other):
    for a, b in ((one, other), (torch.tensor(one), torch.tensor(other))):
        assert any_batch.is_equal(a, a) and any_batch.is_equal(b, b) and not any_batch.is_equal(a, b)
    nan = torch.full((2,), float("nan"))
    assert any_batch.is_equal(nan, nan.clone()) and any_batch.is_equal(float("nan"), float("nan"))
