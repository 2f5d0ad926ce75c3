# SPDX-License-Identifier: MIT
"""Checkpoints with a right checksum and a content that nobody wrote: FORMAT, and no code of a class is run."""

import copy
import io
import json
import random
from pathlib import Path

import numpy
import pytest
import torch

import program
from ftn_pytorch import errors
from ftn_pytorch.checkpoint import archive, base, content, file

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
    program.call(runner, "step")
    path = str(tmp_path / "state")
    program.save(runner, path)
    return runner, path, content.read(path)[:3]


def test_a_malformed_content_is_format_and_runs_no_code(written, monkeypatch):
    runner, path, (_, state, arrays) = written
    # The numbers of random generators are many, and alike.
    ways = [way for way in nodes(state) if way and not (way[0] == "random" and len(way) > 3)]
    odd_arrays = (torch.ones(3, dtype=torch.int64), torch.ones(()), numpy.ones(2), torch.ones(1, dtype=torch.complex64))
    dice = random.Random(7)
    done = {"restored": 0, "FORMAT": 0}
    for number in range(600):
        tree, forged = state, dict(arrays)
        if number % 10 == 0:
            forged[dice.choice(list(arrays))] = dice.choice(odd_arrays)
        else:
            tree = changed(state, dice.choice(ways), dice.choice(ODD))
        found = json.loads(json.dumps(tree)), forged, {}
        monkeypatch.setattr(archive, "read", lambda *_, found=found: found)
        try:
            program.restore(runner, path)
            done["restored"] += 1
        except errors.FtnPytorchError as failure:
            assert failure.status == "FORMAT", failure.text
            done["FORMAT"] += 1
    assert done["FORMAT"] > 200
    names = vars(runner._module)
    assert names["chosen"].__module__ == "model" and names["table"].default_factory is names["zero"]


FORGED = {
    "queue": ({"torch_background": {"~": "object", "type": "x", "state": {}}}, {}),
    "no object": ({"torch_background": 3}, {}),
    "no rank": ({}, {"rank": None, "ranks": None, "shared": None, "left_out": None}),
    "foreign names": ({}, {"shared": ["a"], "left_out": ["b"]}),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_file_of_other_ways_to_run_that_nobody_wrote(what, written, monkeypatch):
    """As one of a run with background=, or of one rank of several."""
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "1")
    runner, path, (about, state, arrays) = written
    objects, description = FORGED[what]
    tree = {**state, "objects": {**state["objects"], **objects}}
    file.write(path, {**about, **description}, lambda stream: archive.write(stream, tree, arrays))
    try:
        program.restore(runner, path)
        assert not objects
    except errors.FtnPytorchError as failure:
        assert failure.status == "FORMAT" and "Traceback" not in failure.text


PARTS = {
    "no table": [],
    "another rank": {"1": b""},
    "nothing": {"2": None},
    "a number": {"2": torch.tensor(1 << 60)},
    "large numbers": {"2": torch.tensor([300])},
    "reals": {"2": torch.tensor([0.5])},
    "sparse": {"2": torch.eye(2).to_sparse()},
    "foreign": {"2": b"PK, and no more of it"},
    "empty": {"2": torch.zeros(0, dtype=torch.uint8)},
}


@pytest.mark.parametrize("what", PARTS)
def test_a_state_of_another_rank_that_nobody_wrote(what):
    with pytest.raises(errors.FtnPytorchError) as refused:
        content.of_rank(({}, {}, {}, PARTS[what]), 2, "the file")
    assert refused.value.status == "FORMAT" and "the file" in refused.value.text


@pytest.mark.parametrize("kind", ["torch", "plain"])
def test_an_archive_that_nobody_wrote_is_format_or_file(kind, tmp_path, monkeypatch):
    """Bytes are changed, cut off and put in before the digest is made."""
    monkeypatch.chdir(tmp_path)
    held = {"numbers": [1, 2.5], "pair": (1, 2), "array": numpy.arange(5.0)}
    checkpoint = base.Checkpoint(held=held, **({"net": torch.nn.Linear(2, 2)} if kind == "torch" else {}))
    checkpoint.save("good")
    raw = Path("good").read_bytes()
    _, _, length, _ = file._closing(io.BytesIO(raw))
    dice = random.Random(11)
    statuses = set()
    for number in range(200):
        forged = bytearray(raw[:length])
        at = dice.randrange(length)
        if number % 3 == 0:
            forged[at] ^= 1 << dice.randrange(8)
        elif number % 3 == 1:
            del forged[at : at + dice.choice([1, 30, length])]
        else:
            forged[at:at] = dice.randbytes(dice.randrange(1, 50))
        claimed = kind if number % 20 else "".join(sorted(kind))
        file.write("forged", {"archive": claimed}, lambda stream, forged=forged: stream.write(bytes(forged)))
        for read in (checkpoint.restore, base.Checkpoint.read):
            try:
                read("forged")
            except errors.FtnPytorchError as failure:
                statuses.add(failure.status)
    assert "FORMAT" in statuses and statuses <= {"FORMAT", "FILE"}


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


def test_the_kind_of_a_file_is_told_by_its_end(tmp_path, fails):
    path = str(tmp_path / "a.ftr")
    assert file.kind(path) is None
    for kind in (file.CHECKPOINT, file.RECORDING):
        file.write(path, {}, lambda stream: stream.write(b"x"), kind=kind)
        assert file.kind(path) == kind
        with file.opened(path) as (about, _):
            assert about == {}
    file.write(path, {}, lambda stream: stream.write(b"x"), kind=2)
    assert file.kind(path) is None
    with fails("FORMAT", "is of kind 2, which this version of ftn_pytorch does not know"), file.opened(path):
        pass
    Path(path).write_bytes(b"PK" + bytes(100))
    assert file.kind(path) is None
