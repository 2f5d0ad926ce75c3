# SPDX-License-Identifier: MIT
"""Kinds of scripts: each trains, is killed, restarts and goes on bit for bit, or is refused when it is saved.

The processes are forks of this one, which has imported torch already.
"""

import importlib.util
import os
import signal
import textwrap

import pytest
import torch

import program
from forking import without_devices
from ftn_pytorch import errors
from ftn_pytorch.checkpoint import Checkpoint

STEPS, KILLED_AT = 8, 4

NET = "net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.3), torch.nn.Linear(4, 1))\n"
ADAM = "optimizer = torch.optim.Adam(net.parameters(), lr=0.01)\n"
STEP = """
def step():
    optimizer.zero_grad()
    loss = net(torch.randn(4, 3)).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
"""
START = "import torch\ntorch.manual_seed(0)\n"
HELPERS = START + NET + ADAM + STEP

# name: (script, kept), or (script, refused); helpers.py and network.py, which has the network alone, are beside them
KEPT, REFUSED = "kept", "refused"
KINDS = {
    "global network": (HELPERS, KEPT),
    "imported names": (START + "from helpers import net, optimizer, step as train\ndef step(): return train()\n", KEPT),
    "imported network": (START + "import network\nnet = network.net\n" + ADAM + STEP, KEPT),
    "imported network without a name": (
        START + "import network\n" + ADAM.replace("net.", "network.net.") + STEP.replace("= net(", "= network.net("),
        REFUSED,
    ),
    "imported training": (
        "import helpers\nlosses = []\ndef step():\n    losses.append(helpers.step())\n    return losses[-1]\n",
        REFUSED,
    ),
    "closure": (
        START + "def make():\n" + textwrap.indent(NET + ADAM + STEP, "    ") + "    return step, optimizer\n"
        "step, optimizer = make()\n",
        REFUSED,
    ),
    "class instance": (
        START
        + """
class Normaliser:
    def __init__(self): self.mean, self.count = torch.zeros(3), 0
    def __call__(self, x):
        self.count += 1
        self.mean = self.mean + (x.mean(0) - self.mean) / self.count
        return x - self.mean
class Learner:
    def __init__(self):
        self.net, self.normalise = torch.nn.Linear(3, 1), Normaliser()
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1, momentum=0.9)
    def step(self):
        self.optimizer.zero_grad()
        loss = self.net(self.normalise(torch.randn(4, 3))).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()
learner = Learner()
def step(): return learner.step()
""",
        KEPT,
    ),
    "dict of leaves": (
        START
        + """
params = {"w": torch.randn(3, 1, requires_grad=True), "b": [torch.zeros(1, requires_grad=True)]}
W = torch.randn(1, requires_grad=True)
optimizer = torch.optim.Adam([params["w"], *params["b"], W], lr=0.05)
net = lambda x: (x @ params["w"] + params["b"][0]) * W
"""
        + STEP,
        KEPT,
    ),
    "dataclass buffer": (
        START
        + NET
        + ADAM
        + """
import collections, dataclasses, random
@dataclasses.dataclass
class Sample:
    x: torch.Tensor
    weight: float
@dataclasses.dataclass
class Settings:
    rate: float = 1.0
random.seed(0)
settings, memory, history = Settings(), collections.deque(maxlen=5), []
def step():
    memory.append(Sample(torch.randn(3), random.random()))
    history.append(Sample(torch.randn(3), settings.rate))
    settings.rate *= 0.9
    chosen = random.choices(memory, k=2) + random.choices(history, k=2)
    optimizer.zero_grad()
    loss = sum(one.weight * net(one.x).square().sum() for one in chosen) * settings.rate
    loss.backward()
    optimizer.step()
    return loss.item()
""",
        KEPT,
    ),
    "several optimizers and schedulers": (
        START
        + NET
        + """
other = torch.nn.Linear(1, 1)
optimizers = [torch.optim.Adam(net.parameters(), 0.05), torch.optim.SGD(other.parameters(), 0.1, momentum=0.9)]
rates = torch.optim.lr_scheduler
schedulers = {"a": rates.StepLR(optimizers[0], 2), "b": rates.CosineAnnealingLR(optimizers[1], 5)}
def step():
    loss = other(net(torch.randn(4, 3))).square().mean()
    loss.backward()
    for one in optimizers:
        one.step()
        one.zero_grad()
    for one in schedulers.values(): one.step()
    return loss.item()
""",
        KEPT,
    ),
    "GradScaler": (
        START
        + NET
        + ADAM
        + """
scaler = torch.amp.GradScaler("cpu", growth_interval=2)
def step():
    optimizer.zero_grad()
    loss = net(torch.randn(4, 3)).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.item() + scaler.get_scale()
""",
        KEPT,
    ),
    "averaged copy": (
        START
        + NET
        + ADAM
        + """
average = torch.optim.swa_utils.AveragedModel(net)
"""
        + STEP.replace("    return", "    average.update_parameters(net)\n    return").replace(
            "loss.item()", "loss.item() + average.module[0].weight.sum().item()"
        ),
        KEPT,
    ),
    "NumPy only": (
        """
import numpy as np
np.random.seed(0)
weights, moments, steps = np.random.randn(3), {"m": np.zeros(3)}, 0
def step():
    global steps
    steps += 1
    x = np.random.randn(4, 3)
    loss = np.mean((x @ weights) ** 2)
    moments["m"] = 0.9 * moments["m"] + 2 * x.T @ (x @ weights) / 4
    weights[:] -= 0.1 * moments["m"] / steps
    return float(loss)
""",
        KEPT,
    ),
    "generator state": (
        START
        + NET
        + ADAM
        + """
import random
import numpy as np
generator, noise, dice = torch.Generator().manual_seed(3), np.random.default_rng(3), random.Random(3)
def step():
    optimizer.zero_grad()
    x = torch.randn(4, 3, generator=generator) * float(noise.normal()) + dice.random()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
""",
        KEPT,
    ),
    "dict subclass": (
        START
        + NET
        + """
class Settings(dict):
    def __getattr__(self, name): return self[name]
settings = Settings(rate=0.1)
def step():
    loss = net(torch.randn(4, 3)).square().mean() * settings.rate
    loss.backward()
    with torch.no_grad():
        for each in net.parameters():
            each -= settings.rate * each.grad
            each.grad = None
    settings["rate"] *= 0.9
    return loss.item()
""",
        KEPT,
    ),
    "Lightning module": (
        """
import lightning
"""
        + START
        + """
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 1)
    def forward(self, x): return self.net(x)
    def configure_optimizers(self): return torch.optim.Adam(self.parameters(), 0.01)
net = Model()
optimizer = net.configure_optimizers()
"""
        + STEP,
        KEPT,
    ),
}


def in_child(work):
    """Run work in a fork; its exit status, negative for a signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except errors.FtnPytorchError as failure:
            print(failure)
            os._exit(7 if failure.status == "RESULT_TYPE" else 1)
        except BaseException as failure:
            print(repr(failure))
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def train(script, place, first, last, killed_at=None):
    """Load the script and train, from a checkpoint after the first start; losses go to a file, bit for bit."""
    runner = program.load(script)
    if first:
        assert program.restore(runner, place) == first
    function = program.function(runner, "step")
    with open(f"{place}.{first}", "w") as losses:
        for step in range(first + 1, last + 1):
            print(function().hex(), file=losses, flush=True)
            if step == killed_at:
                program.checkpoint(runner, place, step=step)
                function()
                os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def warm():
    """What torch imports at its first step need not be imported by each child."""
    net = torch.nn.Linear(1, 1)
    for kind in (torch.optim.Adam, torch.optim.SGD):
        optimizer = kind(net.parameters(), 0.1)
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
        net(torch.ones(1, 1)).sum().backward()
        optimizer.step()
    torch.optim.swa_utils.AveragedModel(net)
    torch.amp.GradScaler("cpu")
    Checkpoint(net=net)


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("kind", KINDS)
def test_a_training_that_is_killed_goes_on_bit_for_bit_or_is_refused(request, kind, write, tmp_path):
    if torch.cuda.is_available():
        without_devices(f"{__file__}::{request.node.name}")
        return
    text, outcome = KINDS[kind]
    if "lightning" in text and importlib.util.find_spec("lightning") is None:
        pytest.skip("Lightning is not installed")
    write("helpers.py", HELPERS)
    write("network.py", START + NET)
    script = write("model.py", text)
    threads = torch.get_num_threads()
    # A fork keeps one thread only, so a pool of them must not be waited for.
    torch.set_num_threads(1)
    try:
        whole, halves = str(tmp_path / "whole"), str(tmp_path / "halves")
        assert in_child(lambda: train(script, whole, 0, STEPS)) == 0
        ended = in_child(lambda: train(script, halves, 0, STEPS, KILLED_AT))
        if outcome == REFUSED:
            assert ended == 7, "it was not refused"
            return
        assert ended == -signal.SIGKILL
        assert in_child(lambda: train(script, halves, KILLED_AT, STEPS)) == 0
    finally:
        torch.set_num_threads(threads)
    expected = (tmp_path / "whole.0").read_text()
    assert (tmp_path / "halves.0").read_text() + (tmp_path / f"halves.{KILLED_AT}").read_text() == expected
    assert len(set(expected.split())) == STEPS
