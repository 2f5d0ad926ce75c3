# SPDX-License-Identifier: MIT
"""Checkpoint: what is kept comes back bit for bit, and what does not fit is refused before anything is changed."""

import collections
import json
import pickle
import random

import numpy as np
import pytest
import torch

import ftn_pytorch
from ftn_pytorch import process
from ftn_pytorch.checkpoint import Checkpoint, file, payload
from ftn_pytorch.checkpoint.objects import tree_of
from ftn_pytorch.checkpoint.tree import Encoder, Unstorable, decode

Sample = collections.namedtuple("Sample", "x y")


class Training:
    """Everything that a training may have: dropout, batch norm, Adam, a schedule, a scaler, a shuffled buffer."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        nn = torch.nn
        self.net = nn.Sequential(nn.Linear(3, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Tanh(), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, milestones=[7, 15, 15], gamma=0.5)
        self.scaler = torch.amp.GradScaler("cpu", growth_interval=4)
        self.buffer = collections.deque(maxlen=64)
        self.generator = torch.Generator().manual_seed(seed)
        self.noise = np.random.default_rng(seed)
        self.dice = random.Random(seed)
        self.counters = {"step": 0, "best": float("inf")}

    def checkpoint(self):
        return Checkpoint(vars(self))

    def step(self):
        x = torch.randn(8, 3, generator=self.generator) + float(np.random.normal()) + float(self.noise.normal())
        self.buffer.extend(Sample(row, row.sum() + self.dice.random()) for row in x)
        order = list(range(len(self.buffer)))
        random.shuffle(order)
        batch = [self.buffer[index] for index in order[:16]]
        prediction = self.net(torch.stack([sample.x for sample in batch])).squeeze(1)
        loss = torch.nn.functional.mse_loss(prediction, torch.stack([torch.as_tensor(sample.y) for sample in batch]))
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        self.counters["step"] += 1
        self.counters["best"] = min(self.counters["best"], loss.item())
        return loss.item()


@pytest.fixture
def saved(tmp_path):
    """A training after some steps, and the file that it wrote."""
    training = Training()
    for _ in range(5):
        training.step()
    return training, training.checkpoint().save(str(tmp_path / "state.ckpt"), step=5)


# ---- what is kept


def test_training_goes_on_as_if_it_had_never_stopped(saved):
    training, path = saved
    expected = [training.step() for _ in range(20)]
    other = Training(seed=1)
    other.net.eval()
    assert other.checkpoint().restore(path) == 5
    assert [other.step() for _ in range(20)] == expected
    assert other.counters == training.counters
    assert type(other.buffer[-1]) is Sample


def test_restoring_changes_objects_in_place(saved):
    _, path = saved
    other = Training(seed=1)
    before = {name: id(value) for name, value in vars(other).items()}
    other.checkpoint().restore(path)
    assert {name: id(value) for name, value in vars(other).items()} == before


VALUES = {
    "scalars": [None, True, 3, 2**80, -0.0, 1e-320, float("inf"), "über \udc80", b"\x00\xff", bytearray(b"a"), 1 - 2j],
    "containers": [(1, (2,)), {1, "a"}, frozenset([1]), {(1, 2): "tuple key", None: 1}, collections.Counter("aab")],
    "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
    "deque": collections.deque([1, 2, 3], maxlen=3),
    "tagged": {"~": "a dict that looks like one of ours"},
    "named": Sample(1, [2]),
    "numbers": [np.float32(0.1), np.int64(-3), np.bool_(True), np.datetime64("2026-01-01")],
    "arrays": [np.arange(6.0).reshape(2, 3)[:, ::-1], np.zeros((0, 3), np.int8), np.array("x"), np.array(["a", "bc"])],
}
TENSORS = {
    "types": [
        torch.tensor([1.5, -0.0]).to(kind) for kind in (torch.float16, torch.bfloat16, torch.complex64, torch.bool)
    ],
    "shapes": [torch.tensor(3.0), torch.zeros(0, 4), torch.arange(6).reshape(2, 3).T, torch.ones(2, 3, 4)[:, 1]],
    "lazy": [torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag],
    "sparse": torch.eye(3).to_sparse(),
    "leaf": torch.ones(2, requires_grad=True),
    "with/slash": {"a/b": torch.tensor(1), "a": {"b": torch.tensor(2)}},
}


def same(a, b):
    if isinstance(a, torch.Tensor):
        dense = [value.detach().to_dense() if value.is_sparse else value.detach() for value in (a, b)]
        return a.dtype == b.dtype and a.requires_grad == b.requires_grad and torch.equal(*dense)
    if isinstance(a, (np.ndarray, np.generic)):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple, collections.deque)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


@pytest.mark.parametrize("values", [VALUES, {**VALUES, **TENSORS}], ids=["numpy", "torch"])
def test_values_come_back_bit_for_bit(tmp_path, values):
    path = Checkpoint(values=values).save(str(tmp_path / "values"))
    target = {"old": 1}
    Checkpoint(values=target).restore(path)
    for name in values:
        assert same(target[name], values[name]), name
    assert Checkpoint.read(path)["objects"]["values"].keys() == values.keys()


def test_a_view_is_written_without_the_memory_around_it(tmp_path):
    path = Checkpoint(parts=[torch.zeros(1_000_000)[:3]]).save(str(tmp_path / "view"))
    assert len(open(path, "rb").read()) < 100_000


def test_objects_in_lists_and_dicts_are_kept(tmp_path):
    def make(seed):
        torch.manual_seed(seed)
        nets = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
        return {
            "nets": nets,
            "all": {"sgd": torch.optim.SGD(nets[0].parameters(), 0.1, momentum=0.9), 3: (nets[1],), "n": seed},
        }

    one, two = make(1), make(2)
    Checkpoint(two).restore(Checkpoint(one).save(str(tmp_path / "nested")))
    assert torch.equal(one["nets"][1].weight, two["nets"][1].weight)
    assert two["all"]["n"] == 1


def test_modules_keep_which_parts_are_in_training(tmp_path):
    one, two = Training(), Training()
    one.net[2].eval()
    two.checkpoint().restore(one.checkpoint().save(str(tmp_path / "mode")))
    assert [module.training for module in two.net] == [True, True, False, True, True]


def test_description_tells_versions_and_the_writer(saved):
    about = Checkpoint.read(saved[1])
    assert about["step"] == 5
    assert (about["library"], about["torch"], about["numpy"]) == (
        ftn_pytorch.__version__,
        torch.__version__,
        np.__version__,
    )
    assert (about["rank"], about["ranks"], about["job"]) == (0, 1, None)
    assert about["objects"]["counters"]["step"] == 5


def test_torch_reads_the_file_by_itself(saved):
    training, path = saved
    content = torch.load(path, weights_only=True)
    assert torch.equal(content["arrays"]["net/0.weight"], training.net[0].weight)


def test_a_numpy_script_needs_no_torch(python, tmp_path):
    code = """
    import sys
    import numpy as np
    from ftn_pytorch import Checkpoint
    weights, values = np.arange(4.0), {"step": 1}
    checkpoint = Checkpoint(weights=weights, values=values)
    checkpoint.save(sys.argv[1])
    expected = np.random.random()
    weights[:], values["step"] = 0, 7
    checkpoint.restore(sys.argv[1])
    assert list(weights) == [0, 1, 2, 3] and values == {"step": 1} and np.random.random() == expected
    assert "torch" not in sys.modules
    """
    python(code, tmp_path / "plain")
    assert json.loads(np.load(tmp_path / "plain")["state.json"])[0]["objects"]["values"] == {"step": 1}


def test_the_package_does_not_import_checkpoints_before_they_are_used(python):
    python("import sys, ftn_pytorch; assert 'ftn_pytorch.checkpoint' not in sys.modules; ftn_pytorch.Checkpoint")
    with pytest.raises(AttributeError, match="nothing"):
        ftn_pytorch.nothing


# ---- what cannot be kept


class Unknown:
    pass


LOOP = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [Unknown()]}, "values/a/0 is of type"),
        ({"a": np.array([None])}, "values/a is a NumPy array of object"),
        ({"a": torch.zeros(1, device="meta")}, "meta"),
        ({"a": LOOP}, "contains itself"),
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


def adam(*sizes):
    return torch.optim.Adam(net(*sizes).parameters())


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
        ({"opt": adam(3, 4)}, {"opt": adam(3, 4, 1)}, ["groups of [2] parameters in the file and of [4] here"]),
        (
            {"opt": adam(3, 4)},
            {"opt": torch.optim.SGD(net(3, 4).parameters(), 0.1)},
            ["of type torch.Adam in the file and torch.SGD"],
        ),
        ({"nets": [net(1, 1)]}, {"nets": [net(1, 1), net(1, 1)]}, ["nets has 1 items in the file and 2 here"]),
        ({"nets": {"a": net(1, 1)}}, {"nets": {"b": net(1, 1)}}, ["nets has a in the file and ['b'] here"]),
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
    with pytest.warns(process.FtnPytorchWarning, match="2 CUDA devices and there are 1"):
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
    with fails("FORMAT", "holds what no checkpoint holds", "UnpicklingError"):
        Checkpoint(values={}).restore(forge(tmp_path / "forged", (tmp_path / "harm.pt").read_bytes()))


def test_pickled_arrays_are_refused(tmp_path, fails):
    import zipfile

    with zipfile.ZipFile(tmp_path / "harm.zip", "w") as archive:
        archive.writestr("state.json", json.dumps([{}, {"a": "0.npy"}]))
        with archive.open("0.npy", "w") as member:
            np.lib.format.write_array(member, np.array([Harm()], dtype=object), allow_pickle=True)
    with fails("FORMAT", "holds what no checkpoint holds", "allow_pickle"):
        Checkpoint(values={}).restore(forge(tmp_path / "forged", (tmp_path / "harm.zip").read_bytes(), "plain"))


@pytest.mark.parametrize("content", [b"", b"nonsense", pickle.dumps(Harm())])
def test_nonsense_with_a_right_checksum_is_refused(tmp_path, fails, content):
    with fails("FORMAT", "holds what no checkpoint holds"):
        Checkpoint(values={}).restore(forge(tmp_path / "forged", content))


def test_a_state_that_is_not_understood_is_refused(tmp_path, fails):
    stream = open(tmp_path / "odd", "wb")
    with stream:
        payload.write(stream, {"objects": {"values": {"~": "tensor", "at": "x"}}, "config": {}, "random": {}}, {})
    with fails("FORMAT", "cannot be understood"):
        Checkpoint(values={}).restore(forge(tmp_path / "forged", (tmp_path / "odd").read_bytes(), "plain"))


def test_a_later_format_is_told_with_both_numbers(tmp_path, fails, monkeypatch):
    monkeypatch.setattr(file, "FORMAT", 2)
    path = Checkpoint(values={}).save(str(tmp_path / "state"))
    monkeypatch.undo()
    with fails("FORMAT", "has format 2", "reads format 1"):
        Checkpoint(values={}).restore(path)


def test_decoding_makes_no_objects():
    encoder = Encoder(tree_of)
    tree = encoder.encode(net(1, 1), "net")
    with pytest.raises((KeyError, Unstorable)):
        decode(tree, encoder.arrays, lambda name: None)
