# SPDX-License-Identifier: MIT
"""Shapes of state: 7 calls at once give what 3 calls, a checkpoint, a fresh load, a restore and 4 calls give."""

import sys

import pytest
import torch

from restarting import run

START = "import torch\ntorch.manual_seed(0)\n"
NET = START + "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5), torch.nn.Linear(2, 1))\n"
ADAM = "optimizer = torch.optim.SGD(net.parameters(), lr=0.01)\n"

# name: a script whose step() gives another number in each call, by its state
SHAPES = {
    "gradients that are added up": NET
    + ADAM
    + """
calls = [0]
def step():
    calls[0] += 1
    net(torch.ones(1, 2) * calls[0]).square().sum().backward()
    if calls[0] % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
    return float(sum(p.sum() for p in net.parameters())) + calls[0]
""",
    "gradients of a lone tensor": START
    + """
w = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
calls = [0]
def step():
    calls[0] += 1
    (w * calls[0]).square().sum().backward()
    if calls[0] % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
    return float(w.sum()) + (0 if w.grad is None else float(w.grad.sum()))
""",
    "functions made of texts": """
n, COUNTS, THRESHOLD = 0, [0], 2
class State:
    def __init__(self): self.n, self.seen, self.scale = 0, [], 3
    exec("def advance(self):\\n    self.n += self.scale\\n    self.seen.append(self.n)")
STATE = State()
exec("def step():\\n    global n\\n    n += THRESHOLD\\n    COUNTS[0] += n\\n    STATE.advance()\\n"
     "    return float(n + COUNTS[0] + len(STATE.seen) * STATE.n)")
""",
    "SimpleNamespace": """
from types import SimpleNamespace
state = SimpleNamespace(step=0, inner=SimpleNamespace(sum=0.0))
def step():
    state.step += 1
    state.inner.sum += state.step
    return float(state.step + state.inner.sum)
""",
    "Namespace in capital letters": """
import argparse
STATE = argparse.Namespace(step=0)
def step():
    STATE.step += 1
    return float(STATE.step)
""",
    "Enum": """
import enum
class Mode(enum.Enum):
    A, B, C = 1, 2, 3
    @property
    def following(self): return Mode(self.value % 3 + 1)
class Bits(enum.Flag):
    X, Y, Z = 1, 2, 4
mode, bits, n = Mode.A, Bits.X, 0
def step():
    global mode, bits, n
    mode, bits, n = mode.following, bits ^ (Bits.X | Bits.Z), n + 1
    return mode.value + 10.0 * bits.value + 100 * n
""",
    "Decimal and Fraction": """
from decimal import Decimal
from fractions import Fraction
total, part = Decimal("0.1"), Fraction(1, 3)
def step():
    global total, part
    total, part = total + Decimal("0.1"), part * Fraction(2, 3)
    return float(total) + float(part)
""",
    "dates": """
import datetime
now = datetime.datetime(2026, 1, 30, 22, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=2)), fold=1)
day, wait, clock = datetime.date(2026, 2, 27), datetime.timedelta(seconds=1), datetime.time(1, 2, 3)
def step():
    global now, day, wait, clock
    now, day, wait = now + datetime.timedelta(hours=1), day + datetime.timedelta(days=1), wait * 2
    clock = clock.replace(second=clock.second + 1)
    return now.timestamp() + day.toordinal() + wait.total_seconds() + clock.second + now.fold
""",
    "paths": """
import pathlib
place, n = pathlib.Path("run0"), 0
def step():
    global place, n
    n += 1
    place = place / str(n)
    return float(len(str(place)) * 10 + n)
""",
    "global under a decorator without wraps": """
n = 0
def timed(function):
    def inner(*arguments): return function(*arguments)
    return inner
@timed
def step():
    global n
    n += 1
    return float(n)
""",
    "numbers of a decorator": """
def counted(function):
    count, seen = 0, []
    def inner():
        nonlocal count
        count += 1
        seen.append(count)
        return function() + count + sum(seen)
    return inner
@counted
def step(): return 0.0
""",
    "numbers in a network": NET
    + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls, self.hidden, self.seen = torch.nn.Linear(2, 1), 0, torch.zeros(1), []
    def forward(self, x):
        self.calls += 1
        self.hidden = 0.5 * self.hidden + self.layer(x).detach().mean()
        self.seen.append(self.calls)
        return self.layer(x) * self.calls + self.hidden + sum(self.seen)
net = Net()
def step(): return float(net(torch.ones(1, 2)).sum())
""",
    "rate of a Dropout": NET
    + """
def step():
    net[1].p *= 0.5
    return net[1].p
""",
    "attributes of functions": """
def step():
    step.calls = getattr(step, "calls", 0) + 1
    helper.scale *= 1.5
    return step.calls * helper.scale
def helper(): pass
helper.scale = 1.0
""",
    "attributes of classes": """
class Counter:
    made, names = 0, []
    @classmethod
    def count(cls): cls.made += 1
class Other:
    made = 0
    def count(self): type(self).made += 2
other = Other()
def step():
    Counter.count()
    other.count()
    Counter.names.append("x")
    return float(Counter.made + Other.made + len(Counter.names))
""",
    "nonlocal": """
def make():
    n = 0
    def step():
        nonlocal n
        n += 1
        return float(n)
    return step
step = make()
""",
    "list in a closure": """
def make():
    losses = []
    def step():
        losses.append(len(losses))
        return float(sum(losses))
    return step
step = make()
""",
    "default arguments": """
def step(cache={}, *, seen=[0]):
    cache["n"] = cache.get("n", 0) + 1
    seen[0] += cache["n"]
    return float(seen[0])
""",
    "object of an installed package": """
import statistics, torch
spread = statistics.NormalDist(0.0, 1.0)
class Meter: pass
meter = __import__("torch").distributions.Normal(torch.zeros(1), torch.ones(1))
def step():
    meter.loc = meter.loc + 1
    spread._mu += 1.5
    return float(meter.loc) + spread.mean
""",
    "requires_grad": NET
    + ADAM
    + """
calls = [0]
def step():
    calls[0] += 1
    if calls[0] == 2:
        for p in net[0].parameters(): p.requires_grad_(False)
    optimizer.zero_grad()
    net(torch.ones(1, 2)).square().sum().backward()
    optimizer.step()
    return float(sum(p.sum() for p in net.parameters())) + calls[0]
""",
    "itertools.count": """
import itertools
counter = itertools.count(3, 2)
def step(): return float(next(counter))
""",
    "defaultdict in a dict": """
from collections import defaultdict
def zero(): return 0
tables = {"a": defaultdict(list), "n": 0}
made = []
def step():
    tables["n"] += 1
    tables["b" + str(tables["n"])] = defaultdict(zero)
    made.append(defaultdict(int))
    made[0]["x"] += 1
    tables["a"][tables["n"]].append(1)
    tables["b1"]["y"] += 2
    return float(made[0]["x"] + tables["b1"]["y"] + len(tables["a"]))
""",
    "capital letters, changed in place": """
import torch
HISTORY, TABLE, W = [], {"n": 0}, torch.zeros(2)
def note(to): to.append(1)
def step():
    note(HISTORY)
    table = TABLE
    table["n"] += 1
    for each in [W]: each += 1
    return float(len(HISTORY) + table["n"] + W.sum())
""",
    "an imported module": """
import counting
from counting import Box
def step(): return counting.count() + Box.total + counting.STATE["n"]
""",
    "own fields of an optimizer": NET
    + """
class Slow(torch.optim.SGD):
    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.calls = 0
    def step(self, closure=None):
        self.calls += 1
        if self.calls % 2 == 0: super().step(closure)
optimizer = Slow(net.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    net(torch.ones(1, 2)).square().sum().backward()
    optimizer.step()
    return float(sum(p.sum() for p in net.parameters())) + optimizer.calls
""",
    "an optimizer in a field of a network": START
    + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=0.1)
    def step(self):
        self.optimizer.zero_grad()
        loss = self.layer(torch.ones(1, 2)).square().sum()
        loss.backward()
        self.optimizer.step()
        return loss
net = Net()
def step(): return float(net.step())
""",
    "a function that is chosen": """
def one(x): return x + 1
def two(x): return x * 2
chosen, x = one, 1.0
def step():
    global chosen, x
    x = chosen(x)
    chosen = two if chosen is one else one
    return x
""",
    "a random generator in a closure": """
import random
def make():
    dice = random.Random(3)
    def step(): return dice.random()
    return step
step = make()
""",
    "slots, and a property beside a field": """
class State:
    __slots__ = ("count",)
    def __init__(self): self.count = 0
class Box:
    def __init__(self): self._n = 0
    @property
    def n(self): return self._n
    @n.setter
    def n(self, value): self._n = value
STATE, BOX = State(), Box()
def step():
    STATE.count += 1
    BOX.n += 2
    return float(STATE.count + BOX.n)
""",
    "a dataclass that is named as a progress bar is": """
from dataclasses import dataclass, field
@dataclass
class Progress:
    steps: int = 0
    seen: list = field(default_factory=list)
PROGRESS = Progress()
def step():
    PROGRESS.steps += 1
    PROGRESS.seen.append(2)
    return float(PROGRESS.steps + sum(PROGRESS.seen))
""",
    "partial": """
import functools
def bump(state): state["n"] += 1
state = {"n": 0}
again = functools.partial(bump, state)
HIDDEN = functools.partial(bump, {"n": 0})
def step():
    again()
    return float(state["n"])
""",
}

COUNTING = """
calls, STATE = 0, {"n": 0}
class Box: total = 0
def count():
    global calls
    calls += 1
    STATE["n"] += 1
    Box.total += 2
    return float(calls)
"""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_restart_goes_on_bit_for_bit(shape, load, write, tmp_path):
    text, place = SHAPES[shape], str(tmp_path / "state")
    write("counting.py", COUNTING)
    whole = run(load, text, 7)
    torch.manual_seed(99)
    sys.modules.pop("counting", None)
    halves = run(load, text, 3, place)
    sys.modules.pop("counting", None)
    halves += run(load, text, 4, place, restores=True)
    assert halves == whole
    assert len(set(whole)) > 1
