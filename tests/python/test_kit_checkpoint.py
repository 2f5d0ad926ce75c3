# SPDX-License-Identifier: MIT
"""Scripts that have parts of the kit among their names: their checkpoints keep them without any declaration."""

import gc
from pathlib import Path

import pytest
import torch

import program

TRAINING = """
import torch
from ftn_pytorch.kit import Guard, Log, Normaliser, Replay

torch.manual_seed(0)
normaliser = Normaliser(2)
net = torch.nn.Sequential(normaliser, torch.nn.Linear(2, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
replay = Replay(CAPACITY, KIND, held_out=0.2, seed=3)
guard = Guard(net, optimizer, every=4, patience=1000)
log = Log(PATH)
steps = 0


@torch.no_grad()
def ftn_pytorch_forward(x):
    net.eval()
    return torch.where(guard.outside(x)[:, None], x.sum(1, keepdim=True), net(x))


def ftn_pytorch_train(x, target):
    global steps
    steps += 1
    net.train()
    normaliser.update(x)
    guard.learn_range(x)
    replay.add(x, target)
    rows = replay.draw(16)
    inputs, targets = replay[rows]
    loss = torch.nn.functional.mse_loss(net(inputs), targets)
    if steps == 13:
        loss = loss * float("nan")
    if guard.allows(loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    log.write(steps, loss=loss)
    return guard.score(loss), loss
"""


def train(runner, first, last, columns=2):
    step, forward = (program.function(runner, f"ftn_pytorch_{name}") for name in ("train", "forward"))
    for number in range(first, last):
        random = torch.Generator().manual_seed(number)
        x = torch.randn(5, columns, generator=random)
        loss = step(x, x.sum(1, keepdim=True) if columns == 2 else x.sum(1))[1]
        yield torch.as_tensor(loss).detach(), *forward(3 * x)


@pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning")
@pytest.mark.parametrize("kind", ["ring", "reservoir", "prioritised"])
def test_a_restart_goes_on_bit_for_bit(load, tmp_path, kind):
    text = TRAINING.replace("KIND", repr(kind)).replace("CAPACITY", "64")
    place = str(tmp_path / "checkpoints")
    whole = list(train(load(text.replace("PATH", repr(str(tmp_path / "whole.csv"))), name="whole.py"), 0, 40))
    text = text.replace("PATH", repr(str(tmp_path / "log.csv")))
    runner = load(text, name="first.py")
    found = list(train(runner, 0, 20))
    program.checkpoint(runner, place, keep=2, step=20)
    list(train(runner, 20, 27))  # that the restart takes back
    del runner
    gc.collect()  # as the end of a process does: the last rows of its log are written
    runner = load(text, name="second.py")
    assert program.restore(runner, place) == 20
    found += train(runner, 20, 40)
    assert all(torch.equal(one, other) for pair in zip(whole, found) for one, other in zip(*pair) if one == one)
    # Its last rows are written when a log goes.
    program.checkpoint(runner, place, keep=2, step=40)
    logs = [(tmp_path / name).read_text().splitlines() for name in ("whole.csv", "log.csv")]
    assert [line.partition(",")[0] for line in logs[1][1:]] == [str(step) for step in range(1, 41)]


@pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning")
def test_a_config_that_changed_is_an_error_and_the_training_goes_on_as_it_was(load, tmp_path, fails):
    text = TRAINING.replace("KIND", "'ring'")

    def loaded(name, capacity):
        own = text.replace("PATH", repr(str(tmp_path / f"{name}.csv"))).replace("CAPACITY", capacity)
        return load(own, name=f"{name}.py")

    runner = loaded("first", "640")
    list(train(runner, 0, 20))
    program.checkpoint(runner, str(tmp_path / "checkpoints"), keep=2, step=20)
    other, same = (loaded(name, "650") for name in ("other", "same"))
    for each in (other, same):
        torch.manual_seed(5)
        list(train(each, 100, 120))
    with fails("FORMAT", "capacity is 640 in the file and 650 here", "capacity=640"):
        program.restore(other, str(tmp_path / "checkpoints"))
    torch.manual_seed(6)
    refused = list(train(other, 20, 30))
    torch.manual_seed(6)
    assert all(torch.equal(one, each) for pair in zip(refused, train(same, 20, 30)) for one, each in zip(*pair))


@pytest.mark.slow
def test_the_online_closure_restarts_bit_for_bit(tmp_path, extension):
    source = Path(__file__).parents[2] / "examples" / "online_closure" / "closure.py"
    config = {"seed": 3, "warm_up": 200, "capacity": 1000, "width": 8}

    def load(name):
        (tmp_path / f"{name}.py").write_text(source.read_text())
        return program.load(str(tmp_path / f"{name}.py"), config)

    whole = list(train(load("whole"), 0, 120, columns=5))
    runner = load("first")
    found = list(train(runner, 0, 70, columns=5))
    program.checkpoint(runner, str(tmp_path / "checkpoints"), keep=1, step=70)
    runner = load("second")
    program.restore(runner, str(tmp_path / "checkpoints"))
    found += train(runner, 70, 120, columns=5)
    assert len({float(loss) for loss, *_ in whole}) > 50
    assert all(torch.equal(one, other) for pair in zip(whole, found) for one, other in zip(*pair))


CHANGES = {
    "Normaliser": ("Normaliser(2)", "Normaliser(())", "other names or shapes"),
    "held_out": ("held_out=0.2", "held_out=0.5", "held_out is 0.2 in the file and 0.5 here"),
    "kind": ("'ring'", "'reservoir'", "kind is ring in the file"),
    "Guard": ("Guard(net, optimizer,", "Guard(net,", "weights of 2 objects"),
}


@pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning")
@pytest.mark.parametrize(("before", "after", "piece"), CHANGES.values(), ids=CHANGES)
def test_a_part_that_changed_is_named_and_nothing_is_restored(before, after, piece, load, tmp_path, fails):
    text = TRAINING.replace("KIND", "'ring'").replace("CAPACITY", "64")
    runner = load(text.replace("PATH", repr(str(tmp_path / "first.csv"))), name="first.py")
    list(train(runner, 0, 20))
    program.checkpoint(runner, str(tmp_path / "checkpoints"), keep=2, step=20)
    assert before in text
    text = text.replace("PATH", repr(str(tmp_path / "other.csv"))).replace(before, after)
    other, same = (load(text.replace("other.csv", f"{name}.csv"), name=f"{name}.py") for name in ("other", "same"))
    for each in (other, same):
        torch.manual_seed(5)
        list(train(each, 100, 120))
    with fails("FORMAT", piece):
        program.restore(other, str(tmp_path / "checkpoints"))
    torch.manual_seed(6)
    refused = list(train(other, 20, 30))
    torch.manual_seed(6)
    assert all(torch.equal(one, each) for pair in zip(refused, train(same, 20, 30)) for one, each in zip(*pair))
