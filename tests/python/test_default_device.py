# SPDX-License-Identifier: MIT
"""A script that sets torch's default device: what the library makes for itself stays where it belongs.

On the default device "meta" tensors have no values, so each that is made there by mistake shows.
"""

import ast
from pathlib import Path

import pytest

import program
from ftn_pytorch import load_recording

torch = pytest.importorskip("torch")

from torch.utils import _device as of_torch  # noqa: E402

import ftn_pytorch  # noqa: E402

PACKAGE = Path(ftn_pytorch.__file__).parent
FACTORIES = {each.__name__ for each in of_torch._device_constructors()}

SCRIPT = """
import torch
from ftn_pytorch.kit import LearntRange, Normaliser, Replay
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
replay = Replay(64, kind=KIND, seed=3)
known = LearntRange(4)
scaled = Normaliser(4)
torch.set_default_device("meta")
def ftn_pytorch_forward(x):
    with torch.no_grad():
        return net(x)
def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return loss.detach()
def drawn(x, target):
    known.learn(x)
    scaled.update(x)
    replay.add(x.numpy(), target)
    rows = replay.draw(8)
    return sum(each.sum() for each in replay[rows])
"""


@pytest.fixture(autouse=True)
def no_default_device():
    yield
    torch.set_default_device(None)


@pytest.fixture
def loaded(tmp_path):
    def load(kind="ring"):
        path = tmp_path / "model.py"
        path.write_text(SCRIPT.replace("KIND", repr(kind)))
        return program.load(str(path), record=True)

    return load


def numbers(seed, *shape):
    made = torch.Generator("cpu").manual_seed(seed)
    return torch.randn(*shape, generator=made, device="cpu")


def test_factories_name_their_device():
    """But for buffers of networks, which are where torch's own layers would have theirs."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
        of_layers = {id(value) for each in calls if _name(each) == "register_buffer" for value in each.args}
        for each in calls:
            is_torch = isinstance(each.func, ast.Attribute) and ast.unparse(each.func.value).endswith("torch")
            is_named = any(keyword.arg in ("device", None) for keyword in each.keywords)
            if is_torch and _name(each) in FACTORIES and not is_named and id(each) not in of_layers:
                found.append(f"{path.relative_to(PACKAGE)}:{each.lineno}: {ast.unparse(each)}")
    assert not found, "\n".join(found)


def _name(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


@pytest.mark.usefixtures("extension")
def test_recorded_saved_and_restored(loaded, tmp_path):
    runner = loaded()
    losses = []
    for step in range(12):
        losses.append(float(program.call(runner, "ftn_pytorch_train", numbers(step, 5, 4), numbers(step, 5, 2))))
        wanted = program.call(runner, "ftn_pytorch_forward", numbers(step, 5, 4))
    assert len(set(losses)) == 12
    program.save(runner, str(tmp_path / "here.ftr"))
    program.save(runner, str(tmp_path / "here.ckpt"))
    saved = load_recording(str(tmp_path / "here.ftr"))
    assert torch.equal(saved.forward(numbers(11, 5, 4)), wanted)
    trained = float(saved.train(numbers(12, 5, 4), numbers(12, 5, 2)))
    for _ in range(2):
        assert trained == float(program.call(runner, "ftn_pytorch_train", numbers(12, 5, 4), numbers(12, 5, 2)))
        program.restore(runner, str(tmp_path / "here.ckpt"))
        assert torch.equal(program.call(runner, "ftn_pytorch_forward", numbers(11, 5, 4)), wanted)


@pytest.mark.parametrize("kind", ["ring", "reservoir", "prioritised"])
def test_the_kit(loaded, kind):
    runner = loaded(kind)
    for step in range(20):
        found = program.call(runner, "drawn", numbers(step, 5, 4), numbers(step, 5, 2))
    assert found.device.type == "cpu" and found.isfinite()
