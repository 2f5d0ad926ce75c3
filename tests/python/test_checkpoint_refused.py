# SPDX-License-Identifier: MIT
"""Checkpoint: what cannot be kept, what does not fit, and files that mean harm; nothing is changed then."""

import collections
import json
import pickle
import random
import zipfile

import numpy as np
import pytest
import torch

from ftn_pytorch.checkpoint import Checkpoint, archive, file
from ftn_pytorch.checkpoint.capture import Collector
from ftn_pytorch.system import process
from ftn_pytorch.values.encoding import Unstorable, decode
from ftn_pytorch.values.graph import Graph

Sample = collections.namedtuple("Sample", "x y")


# ---- what cannot be kept


SPAWNED = np.random.default_rng(1)
SPAWNED.spawn(1)
DEEP = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [iter([])]}, "values/a/0 is of type"),
        ({"a": np.array([None])}, "values/a is a NumPy array of object"),
        ({"a": torch.zeros(1, device="meta")}, "meta"),
        ({"a": DEEP}, "nested too deeply"),
        ({"a": SPAWNED}, "values/a is of type numpy.random._generator.Generator that has spawned others"),
        ({"a": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])}, "values/a is of type Tensor, a tensor"),
        ({"a": {torch.nn.Linear(1, 1)}}, "values/a/0 is of type torch.nn.modules.linear.Linear"),
        ({"a": torch.masked.masked_tensor(torch.ones(1), torch.tensor([True]))}, "behaviour of its own"),
    ],
)
def test_what_cannot_be_kept_is_named_with_its_place(tmp_path, fails, value, text):
    with fails("RESULT_TYPE", text, "state_dict"):
        Checkpoint(values=value).save(str(tmp_path / "state"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [None, 3, 2.5, "text", True])
def test_values_that_cannot_be_changed_belong_into_a_dict(fails, value):
    with fails("ARGUMENT", "step is of type", "in a dict"):
        Checkpoint(step=value)


# ---- what does not fit


def net(*sizes, dtype=torch.float32):
    return torch.nn.Sequential(*(torch.nn.Linear(a, b, dtype=dtype) for a, b in zip(sizes, sizes[1:])))


def trained(optimizer, *sizes):
    """A network and its optimizer."""
    network = net(*sizes)
    return {"nets": [network], "opt": optimizer(network.parameters())}


@pytest.mark.parametrize(
    ("written", "here", "pieces"),
    [
        ({"net": net(3, 4)}, {"net": net(3, 5)}, ["net/0.weight has shape (4, 3) in the file and (5, 3) here"]),
        ({"net": net(3, 4)}, {"net": net(3, 4, 1)}, ["the file lacks 1.weight, 1.bias"]),
        ({"net": net(3, 4, 1)}, {"net": net(3, 4)}, ["has no place for 1.weight, 1.bias"]),
        (
            {"net": net(3, 4)},
            {"net": net(3, 4, dtype=torch.float64)},
            ["type torch.float32 in the file and torch.float64"],
        ),
        ({"net": net(3, 4)}, {"net": net(3, 4), "buffer": []}, ["the file has no 'buffer'"]),
        ({"net": net(3, 4), "buffer": []}, {"net": net(3, 4)}, ["there is no 'buffer' here"]),
        (
            trained(torch.optim.Adam, 3, 4),
            trained(torch.optim.Adam, 3, 4, 1),
            ["groups of [2] parameters in the file and of [4] here"],
        ),
        (
            trained(torch.optim.Adam, 3, 4),
            trained(torch.optim.SGD, 3, 4),
            ["of type torch.Adam in the file and torch.SGD"],
        ),
        ({"nets": [net(1, 1)]}, {"nets": [net(1, 1), net(1, 1)]}, ["nets/1 is not in the file"]),
        (
            {"nets": {"a": net(1, 1)}},
            {"nets": {"b": net(1, 1)}},
            ["nets/b is not in the file", "there is no 'nets/a' here"],
        ),
        ({"w": torch.zeros(3)}, {"w": torch.zeros(4)}, ["w has shape (3,) in the file and (4,) here"]),
        ({"w": np.zeros(3)}, {"w": np.zeros(3, np.int32)}, ["w has type float64 in the file and int32 here"]),
        ({"w": [1]}, {"w": {}}, ["w is of type list in the file and dict here"]),
        ({"b": collections.deque([1], 3)}, {"b": collections.deque([], 4)}, ["b has maxlen 3 in the file and 4 here"]),
        (
            {"g": torch.Generator()},
            {"g": np.random.default_rng()},
            ["g is of type torch.Generator in the file and numpy.Generator here"],
        ),
    ],
)
def test_what_does_not_fit_is_told_and_nothing_is_changed(tmp_path, fails, written, here, pieces):
    path = Checkpoint({**written, "z": {"n": 1}}).save(str(tmp_path / "state"))
    untouched = {"n": 2}
    before = torch.get_rng_state()
    torch.rand(1)
    changed = torch.get_rng_state()
    with fails("FORMAT", "does not fit", *pieces):
        Checkpoint({**here, "z": untouched}).restore(path)
    assert untouched == {"n": 2}
    assert torch.equal(torch.get_rng_state(), changed) and not torch.equal(changed, before)


class Picky:
    """An object that may refuse its state."""

    def __init__(self, value):
        self.value, self.refuses = value, False

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]
        if self.refuses:
            self.refuses = False
            raise ValueError("I want another state")


def test_an_object_that_refuses_its_state_leaves_all_others_as_they_were(tmp_path, fails):
    old = {"a": Picky(1), "b": [1], "c": Picky([1]), "n": net(1, 1)}
    path = Checkpoint(old).save(str(tmp_path / "state"))
    new = {"a": Picky(2), "b": [2], "c": Picky([2]), "n": net(1, 1)}
    new["c"].refuses = True
    weight, dice = new["n"][0].weight.clone(), random.getstate()
    with fails("FORMAT", "does not fit", "ValueError: I want another state"):
        Checkpoint(new).restore(path)
    assert (new["a"].value, new["b"], new["c"].value) == (2, [2], [2])
    assert torch.equal(new["n"][0].weight, weight) and random.getstate() == dice


def test_a_module_that_refuses_comes_last_and_leaves_all_as_it_was(tmp_path, fails):
    def make(seed):
        torch.manual_seed(seed)
        one, two = net(2, 2), torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2))
        adam = torch.optim.Adam([*one.parameters(), *two.parameters()], 0.1 * seed)
        two(one(torch.rand(3, 2))).sum().backward()
        adam.step()
        return {"adam": adam, "one": one, "two": two}

    def numbers(named):
        states = [named[name].state_dict() for name in ("one", "two")]
        moments = [state["exp_avg"] for state in named["adam"].state.values()]
        return [each.clone() for each in (*states[0].values(), *states[1].values(), *moments)]

    path = Checkpoint(make(1)).save(str(tmp_path / "state"))
    new = make(2)
    new["two"].eval()

    def refuse(module, _):
        raise ValueError("not this state")

    new["two"].register_load_state_dict_post_hook(refuse)
    before, first = numbers(new), next(iter(new["adam"].state.values()))
    with fails("FORMAT", "ValueError: not this state"):
        Checkpoint(new).restore(path)
    assert all(map(torch.equal, before, numbers(new)))
    assert new["adam"].param_groups[0]["lr"] == 0.2 and not new["two"].training
    assert next(iter(new["adam"].state.values())) is first


def test_a_module_that_renames_what_it_loads_gets_what_it_asked_for(tmp_path, fails):
    class Renamed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Linear(2, 2)
            self.register_load_state_dict_pre_hook(self.rename)

        @staticmethod
        def rename(module, state, prefix, *_):
            for name in [name for name in state if name.startswith(prefix + "old.")]:
                state[name.replace("old.", "body.")] = state.pop(name)

    old, new = torch.nn.ModuleDict({"old": torch.nn.Linear(2, 2)}), Renamed()
    Checkpoint(net=new).restore(Checkpoint(net=old).save(str(tmp_path / "state")))
    assert torch.equal(new.body.weight, old["old"].weight)
    path = Checkpoint(net=torch.nn.ModuleDict({"other": torch.nn.Linear(2, 2)})).save(str(tmp_path / "other"))
    before = new.body.weight.clone()
    with fails("FORMAT", "does not fit", "other.weight"):
        Checkpoint(net=new).restore(path)
    assert torch.equal(new.body.weight, before)


class View:
    """State that belongs to another object."""

    def __init__(self, owner):
        self.owner = owner

    def state_dict(self):
        return {"value": self.owner.value}

    def load_state_dict(self, state):
        self.owner.value = state["value"]


def test_objects_that_share_state_are_put_back_last_first(tmp_path, fails):
    owner = Picky(1)
    live = {"a": owner, "b": View(owner), "c": Picky(3)}
    path = Checkpoint(live).save(str(tmp_path / "state"))
    owner.value, live["c"].refuses = 2, True
    with fails("FORMAT", "ValueError: I want another state"):
        Checkpoint(live).restore(path)
    assert owner.value == 2


def test_a_named_tuple_that_has_changed_is_told(tmp_path, fails, monkeypatch):
    path = Checkpoint(values=[Sample(1, 2)]).save(str(tmp_path / "state"))
    monkeypatch.setitem(globals(), "Sample", collections.namedtuple("Sample", "x y z"))
    with fails("FORMAT", "Sample", "other fields"):
        Checkpoint(values=[]).restore(path)


def test_another_config_is_a_warning(tmp_path):
    one, two = Checkpoint(values={"a": 1}), Checkpoint(values={})
    one.config = {"lr": 0.1, "weights": np.ones(2), "same": torch.ones(2)}
    two.config = {"lr": 0.2, "weights": np.ones(2), "same": torch.ones(2)}
    path = one.save(str(tmp_path / "state"))
    with pytest.warns(process.FtnPytorchWarning, match="another config: lr. "):
        two.restore(path)


def test_random_states_of_devices_that_are_not_there_are_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: [torch.arange(16, dtype=torch.uint8)] * 2)
    path = Checkpoint(values={}).save(str(tmp_path / "state"))
    assert Checkpoint.read(path)["random"]["cuda"] == [bytes(range(16))] * 2
    restored = {}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(
        torch.cuda, "set_rng_state", lambda state, index: restored.update({index: bytes(state.tolist())})
    )
    Checkpoint(values={}).restore(path)
    assert restored == {0: bytes(range(16)), 1: bytes(range(16))}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.warns(process.FtnPytorchWarning, match="2 CUDA devices were stored and there are 1"):
        Checkpoint(values={}).restore(path)


# ---- files that mean harm, or are of another time


class Harm:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code of the file was run')",))


def forge(path, content, kind="torch"):
    """A file with a right checksum and any content."""
    about = {"archive": kind, "step": 1}
    file.write(str(path), about, lambda stream: stream.write(content))
    return str(path)


def test_pickled_code_is_refused(tmp_path, fails):
    torch.save({file.MARK: 1, "state": "[{}, {}]", "arrays": {"a": Harm()}}, tmp_path / "harm.pt")
    with fails("FORMAT", "has entries that no checkpoint has", "UnpicklingError"):
        Checkpoint(values={}).restore(forge(tmp_path / "forged", (tmp_path / "harm.pt").read_bytes()))


def test_pickled_arrays_are_refused(tmp_path, fails):
    with zipfile.ZipFile(tmp_path / "harm.zip", "w") as archive:
        archive.writestr("state.json", json.dumps([{}, {"a": "0.npy"}]))
        with archive.open("0.npy", "w") as member:
            np.lib.format.write_array(member, np.array([Harm()], dtype=object), allow_pickle=True)
    with fails("FORMAT", "has entries that no checkpoint has", "allow_pickle"):
        Checkpoint(values={}).restore(forge(tmp_path / "forged", (tmp_path / "harm.zip").read_bytes(), "plain"))


@pytest.mark.parametrize("content", [b"", b"nonsense", pickle.dumps(Harm())])
def test_nonsense_with_a_right_checksum_is_refused(tmp_path, fails, content):
    with fails("FORMAT", "has entries that no checkpoint has"):
        Checkpoint(values={}).restore(forge(tmp_path / "forged", content))


def test_a_state_that_is_not_understood_is_refused(tmp_path, fails):
    with open(tmp_path / "odd", "wb") as stream:
        archive.write(stream, {"objects": {"values": {"~": "tensor", "at": "x"}}, "config": {}, "random": {}}, {})
    with fails("FORMAT", "cannot be understood"):
        Checkpoint(values={}).restore(forge(tmp_path / "forged", (tmp_path / "odd").read_bytes(), "plain"))


def test_a_later_format_is_told_with_both_numbers(tmp_path, fails, monkeypatch):
    monkeypatch.setattr(file, "FORMAT", 4)
    path = Checkpoint(values={}).save(str(tmp_path / "state"))
    monkeypatch.undo()
    with fails("FORMAT", "has format 4", "reads format 3"):
        Checkpoint(values={}).restore(path)


def test_decoding_makes_no_objects():
    encoder = Collector(Graph({}))
    tree = encoder.encode(net(1, 1), "net")
    with pytest.raises((KeyError, Unstorable)):
        decode(tree, encoder.arrays, lambda name: None)
