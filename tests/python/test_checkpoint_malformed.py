# SPDX-License-Identifier: MIT
"""Checkpoints with a right checksum and a content that nobody wrote: FORMAT, and no code of a class is run."""

import copy
import json
import random

import pytest
import torch

from ftn_pytorch import _embed, errors
from ftn_pytorch.checkpoint import base, file

SCRIPT = """
import datetime, decimal, enum, itertools, pathlib, statistics, types, fractions
from collections import defaultdict
import torch

class Mode(enum.Enum):
    A, B = 1, 2
class Bits(enum.Flag):
    X, Y = 1, 2
class Own:
    def __init__(self): self.n, self.when = 0, datetime.timedelta(1)
    @property
    def trap(self): return 0
    @trap.setter
    def trap(self, value): raise SystemExit("code of the class was run")
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = torch.nn.Linear(1, 1), 0
def zero(): return 0

net, own, spread = Net(), Own(), statistics.NormalDist()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
w = torch.ones(1, requires_grad=True)
space, counter, chosen, mode, bits = types.SimpleNamespace(a=1), itertools.count(2), zero, Mode.A, Bits.X
total, part, place = decimal.Decimal("1.5"), fractions.Fraction(1, 3), pathlib.Path("a")
now = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
table = defaultdict(zero)

def step():
    global chosen, mode, bits, total, part, place, now
    chosen, mode, bits, total, part, place, now = zero, Mode.B, Bits.X | Bits.Y, total * 2, part / 2, place / "b", now
    net.calls += 1
    own.n += 1
    spread._mu += 1
    space.a += 1
    next(counter)
    table["a"] += 1
    net.layer(w).sum().backward()
    step.calls = 1
"""
ODD = (None, True, -1, 1e308, "", "os:system", "subprocess:Popen", "model:Own", [], [1, [2]], {}, {"~": "object"})
ODD = (*ODD, {"~": "instance", "type": "subprocess:Popen", "fields": {"a": 1}}, {"~": "code", "name": "os:system"})
ODD = (*ODD, {"~": "Enum", "parts": ["subprocess:Popen", ["A"]]}, {"~": "Decimal", "parts": "x"}, {"~": "nothing"})
ODD = (*ODD, {"~": "defaultdict", "factory": "os:abort", "items": []}, {"~": "Fraction", "parts": [1, 0]})


def nodes(tree, way=()):
    yield way
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, each in pairs:
        yield from nodes(each, (*way, key))


def changed(tree, way, value):
    tree = copy.deepcopy(tree)
    at = tree
    for key in way[:-1]:
        at = at[key]
    at[way[-1]] = value
    return tree


@pytest.fixture
def written(load, tmp_path):
    """A runner, the path of its checkpoint, and its content."""
    runner = load(SCRIPT)
    _embed.bind(runner, "step", 0)[0]()
    path = str(tmp_path / "state")
    _embed.save(runner, path)
    return runner, path, base._read_archive(path)


def test_a_malformed_content_is_format_and_runs_no_code(written, monkeypatch):
    runner, path, (about, state, arrays) = written
    ways = [way for way in nodes(state["objects"]) if way]
    dice = random.Random(7)
    done = {"restored": 0, "FORMAT": 0}
    for _ in range(600):
        tree = {**state, "objects": changed(state["objects"], dice.choice(ways), dice.choice(ODD))}
        monkeypatch.setattr(base, "_read_archive", lambda _, tree=tree: (about, json.loads(json.dumps(tree)), arrays))
        try:
            _embed.restore(runner, path)
            done["restored"] += 1
        except errors.FtnPytorchError as failure:
            assert failure.status == "FORMAT", failure.text
            done["FORMAT"] += 1
    assert done["FORMAT"] > 200
    names = vars(runner._module)
    assert names["chosen"].__module__ == "model" and names["table"].default_factory is names["zero"]


@pytest.mark.parametrize("about", [b"[]", b"{", b'{"archive": []}', b'{"archive": "torch", "step": "x"}', b"\xff"])
def test_a_malformed_description_is_format(tmp_path, fails, about, monkeypatch):
    monkeypatch.setattr(file.json, "dumps", lambda *_, **__: about.decode("latin1"))
    file.write(str(tmp_path / "forged"), {}, lambda stream: stream.write(b"x"))
    monkeypatch.undo()
    with fails("FORMAT", "description that no checkpoint has"):
        base.Checkpoint(values=[torch.ones(1)]).restore(str(tmp_path / "forged"))


@pytest.mark.parametrize(
    "text", ["[1, {}]", '[{"objects": []}, {}]', '[{"objects": {}, "config": 1, "random": {}}, {}]']
)
def test_a_content_without_its_parts_is_format(tmp_path, fails, text):
    def fill(stream):
        torch.save({file.MARK: 1, "state": text, "arrays": {}}, stream)

    file.write(str(tmp_path / "forged"), {"archive": "torch"}, fill)
    with fails("FORMAT", "cannot be understood"):
        base.Checkpoint(values=[]).restore(str(tmp_path / "forged"))
