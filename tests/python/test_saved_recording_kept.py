# SPDX-License-Identifier: MIT
"""Saved recordings and checkpoints of scripts: one among the names of a script, and files of other kinds of runs."""

import pytest

import ftn_pytorch
import program

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("extension")

TRAINED = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss.detach()
"""
WITH_FILE = """
import ftn_pytorch, torch
emulator = ftn_pytorch.load_recording({!r})
net = torch.nn.Linear(3, 1)
calls = 0
def train(x, target):
    global calls
    calls += 1
    net.weight.data += 1
    return emulator.train(x, target)[1] + calls + net.weight.detach().sum()
"""


def samples(step):
    generator = torch.Generator().manual_seed(step)
    return torch.rand(4, 3, generator=generator), torch.rand(4, 1, generator=generator)


@pytest.fixture
def saved(load, tmp_path):
    """A file whose function trains."""
    runner, path = load(TRAINED, name="trained.py", record=True), str(tmp_path / "trained.ftr")
    for step in range(10):
        program.call(runner, "ftn_pytorch_train", *samples(step))
    program.save(runner, path)
    return path


@pytest.mark.parametrize("declared", ["", "ftn_pytorch_state = ['emulator', 'net']\n"])
def test_a_script_keeps_a_recording_among_its_names_and_all_else(load, saved, tmp_path, declared):
    text = (WITH_FILE if not declared else WITH_FILE.replace("calls += 1", "pass")).format(saved) + declared
    runner, place = load(text), str(tmp_path / "steps")

    def results(of, first, last):
        return [program.call(of, "train", *samples(step)).item() for step in range(first, last)]

    results(runner, 0, 3)
    program.checkpoint(runner, place)
    assert {"emulator", "net"} <= set(ftn_pytorch.Checkpoint.read(place)["objects"])
    expected = results(runner, 3, 6)
    for other in (runner, load(text, name="again.py")):
        program.restore(other, place)
        assert results(other, 3, 6) == expected


def test_a_recording_does_not_take_what_a_background_has_published(load, saved, tmp_path, fails):
    runner, place = load(TRAINED, name="trained.py", background=True), str(tmp_path / "steps")
    for step in range(10):
        program.call(runner, "ftn_pytorch_train", *samples(step))
    runner._background.flush()
    program.checkpoint(runner, place)
    recording = program.load_model(saved)
    before = program.call(recording, "ftn_pytorch_parameters")["net.weight"].clone()
    with fails("FORMAT", "was written with background="):
        program.restore(recording, place)
    assert torch.equal(program.call(recording, "ftn_pytorch_parameters")["net.weight"], before)
    script = load(TRAINED, name="alone.py")
    program.restore(script, place)
    program.checkpoint(script, str(tmp_path / "alone"))
    assert program.restore(recording, str(tmp_path / "alone")) == 1
