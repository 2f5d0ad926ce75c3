# SPDX-License-Identifier: MIT
"""Checkpoint: what is kept comes back bit for bit, and what does not fit is refused before anything is changed."""

import collections
import json
import os
import random

import numpy as np
import pytest
import torch

import ftn_pytorch
from ftn_pytorch.checkpoint import Checkpoint

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
    path = Checkpoint(values=values).save(tmp_path / "values")
    target = {"old": 1}
    Checkpoint(values=target).restore(path)
    for name in values:
        assert same(target[name], values[name]), name
    assert Checkpoint.read(path)["objects"]["values"].keys() == values.keys()


def test_a_view_is_written_without_the_memory_around_it(tmp_path):
    path = Checkpoint(parts=[torch.zeros(1_000_000)[:3]]).save(str(tmp_path / "view"))
    assert os.path.getsize(path) < 100_000


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
        _ = ftn_pytorch.nothing
