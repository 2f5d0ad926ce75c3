# SPDX-License-Identifier: MIT
"""What a script keeps without hooks: objects of its own classes, tensors in containers, and what would be lost."""

import json
import zipfile

import pytest
import torch

import program
from ftn_pytorch.checkpoint import Checkpoint, base
from ftn_pytorch.system import log, process


def names(runner):
    return vars(runner._module)


def call(runner, name, *arguments):
    return program.call(runner, name, *arguments)


@pytest.fixture
def again(load, tmp_path):
    """again(text, change): names of a script that was changed by its function, and of a new one that was restored."""

    def again(text, change="change"):
        one = load(text)
        call(one, change)
        program.save(one, str(tmp_path / "state"))
        two = load(text)
        program.restore(two, str(tmp_path / "state"))
        return names(one), names(two)

    return again


# ---- objects of the script's own classes

OBJECTS = """
import collections
import dataclasses
import numpy as np
import torch

@dataclasses.dataclass(frozen=True)
class Sample:
    x: torch.Tensor
    label: str = ""

@dataclasses.dataclass
class Slotted:
    __slots__ = ("count", "mean")
    count: int
    mean: np.ndarray

class Table(dict):
    hits = 0

class Learner:
    def __init__(self):
        self.net = torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.activation, self.device, self.steps, self.owner = torch.tanh, torch.device("cpu"), 0, self
        self.buffer = collections.deque(maxlen=3)
        self.params = [self.net.weight]

learner, table, slotted, samples = Learner(), Table(a=1), Slotted(0, np.zeros(2)), [Sample(torch.zeros(1))]
weight, mean = learner.net.weight, slotted.mean

def change():
    for step in range(4):
        learner.net(torch.rand(1, 2)).sum().backward()
        learner.optimizer.step()
        learner.steps += 1
        learner.buffer.append(Sample(torch.rand(2), str(step)))
    table["b"], table.hits = torch.ones(1), 7
    slotted.count, slotted.mean[0] = 5, 0.25
    samples.append(Sample(torch.rand(3), "new"))
"""


def test_objects_of_own_classes_are_kept_and_restored_in_place(again):
    one, two = again(OBJECTS)
    assert torch.equal(two["learner"].net.weight, one["learner"].net.weight)
    assert two["learner"].net.weight is two["weight"] is two["learner"].params[0]
    assert len(two["learner"].optimizer.state) == 2 and two["learner"].steps == 4
    assert [sample.label for sample in two["learner"].buffer] == ["1", "2", "3"]
    assert all(type(sample) is two["Sample"] for sample in (*two["learner"].buffer, *two["samples"]))
    assert torch.equal(two["samples"][1].x, one["samples"][1].x) and two["samples"][1].label == "new"
    assert two["learner"].owner is two["learner"] and two["learner"].activation is torch.tanh
    assert (list(two["table"]), two["table"].hits, type(two["table"])) == (["a", "b"], 7, two["Table"])
    assert two["slotted"].count == 5 and two["slotted"].mean is two["mean"] and two["mean"][0] == 0.25


def test_a_file_makes_no_objects_of_classes_that_are_not_the_users_own(tmp_path, fails):
    class Own:
        pass

    path = Checkpoint(values=[Own()]).save(str(tmp_path / "state"))
    with zipfile.ZipFile(path) as archive:
        text = archive.read("state.json").decode()
    forged = text.replace(json.dumps(f"{__name__}:{Own.__qualname__}"), '"subprocess:Popen"')
    assert forged != text
    restored = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base.archive, "read", lambda *_: (json.loads(forged)[0], {}, {}))
        with fails("FORMAT", "subprocess.Popen, which is no class of the script"):
            Checkpoint(values=restored).restore(path)
    assert restored == []


def test_a_field_that_cannot_be_kept_is_a_warning_or_an_error(load, tmp_path, fails):
    text = """
    class Settings:
        def __init__(self): self.rate, self.batches = 0.5, iter([1])
    settings = Settings()
    """
    with pytest.warns(process.FtnPytorchWarning, match=r"settings.batches is of type list_iterator, which is not kept"):
        program.save(load(text), str(tmp_path / "state"))
    runner = load(text.replace("iter([1])", "{'w': __import__('torch').ones(1), 'it': iter([1])}"))
    with fails("RESULT_TYPE", "settings.batches/it is of type builtins.list_iterator"):
        program.save(runner, str(tmp_path / "state"))


def test_a_foreign_object_that_holds_arrays_is_a_warning(load, tmp_path):
    text = "import torch\nnormal, a = torch.distributions.Normal(torch.zeros(1), 1.0), []\n"
    with pytest.warns(process.FtnPytorchWarning, match="normal is of type torch.distributions"):
        program.save(load(text), str(tmp_path / "state"))


def test_a_file_of_an_earlier_version_is_read(load, tmp_path, monkeypatch):
    text = "a = [1]\ndef f(): a.append(2)\n"
    monkeypatch.setattr(base, "_WRITTEN", "something_else")
    monkeypatch.setattr(base.file, "FORMAT", 1)
    program.save(load(text), str(tmp_path / "state"))
    monkeypatch.undo()
    runner = load(text + "class C:\n    pass\nc = C()\n")
    call(runner, "f")
    with pytest.warns(process.FtnPytorchWarning, match="earlier version, which did not keep c"):
        program.restore(runner, str(tmp_path / "state"))
    assert names(runner)["a"] == [1]


# ---- tensors that are trained

LEAVES = """
import torch
torch.manual_seed(0)
W = torch.randn(2, 1, requires_grad=True)
params = {"b": torch.zeros(1, requires_grad=True), "more": [torch.ones(1, requires_grad=True)]}
optimizer = torch.optim.Adam([W, params["b"], *params["more"]], lr=0.1)
def step():
    optimizer.zero_grad()
    loss = ((torch.ones(3, 2) @ W + params["b"]) * params["more"][0]).square().sum()
    loss.backward()
    optimizer.step()
    return loss.item()
"""


def test_tensors_of_an_optimizer_stay_its_own(load, tmp_path):
    one = load(LEAVES)
    for _ in range(3):
        call(one, "step")
    program.save(one, str(tmp_path / "state"))
    two = load(LEAVES.replace("manual_seed(0)", "manual_seed(1)"))
    before = [id(each) for each in (names(two)["W"], names(two)["params"]["b"], names(two)["params"]["more"][0])]
    program.restore(two, str(tmp_path / "state"))
    assert [id(each) for each in names(two)["optimizer"].param_groups[0]["params"]] == before
    assert [call(two, "step") for _ in range(5)] == [call(one, "step") for _ in range(5)]


@pytest.mark.parametrize(
    ("old", "new", "piece"),
    [
        ("zeros(1, requires", "zeros(3, requires", "params/b has shape (1,) in the file and (3,) here"),
        ('"more": [', '"c": torch.zeros(1, requires_grad=True), "more": [', "params/c is not in the file"),
        ("[torch.ones(1, r", "[torch.zeros(1), torch.ones(1, r", "params/more/1 is not in the file"),
    ],
)
def test_a_trained_tensor_that_does_not_fit_is_refused(load, tmp_path, fails, old, new, piece):
    program.save(load(LEAVES), str(tmp_path / "state"))
    other = load(LEAVES.replace(old, new).replace('params["more"][0])', 'params["more"][-1])'))
    with fails("FORMAT", piece):
        program.restore(other, str(tmp_path / "state"))


def test_two_names_of_one_tensor_and_two_values_in_the_file(tmp_path):
    path = Checkpoint(values=[torch.zeros(2), torch.ones(2)]).save(str(tmp_path / "state"))
    same = torch.full((2,), 7.0)
    values = [same, same]
    Checkpoint(values=values).restore(path)
    assert values[0] is same and torch.equal(values[0], torch.zeros(2)) and torch.equal(values[1], torch.ones(2))


def test_tensors_that_cannot_be_changed_are_replaced(tmp_path):
    with torch.inference_mode():
        fixed = torch.zeros(2)
    values = {"fixed": fixed, "wide": torch.zeros(1).expand(2)}
    path = Checkpoint(values={"fixed": torch.ones(2), "wide": torch.arange(2.0)}).save(str(tmp_path / "state"))
    Checkpoint(values=values).restore(path)
    assert torch.equal(values["fixed"], torch.ones(2)) and torch.equal(values["wide"], torch.arange(2.0))


# ---- what no name leads to

HELPERS = "import torch\nnet = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
CLOSURE = """
import torch
def make():
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    def step(): return net, optimizer
    return step, {}
step, optimizer = make()
steps = []
"""


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            "import helpers, torch\noptimizer = torch.optim.SGD(helpers.net.parameters(), 0.1)\n",
            ["optimizer trains weight of a Linear", "helpers.net"],
        ),
        ("import helpers\nsteps = []\n", ["helpers.net, helpers.optimizer"]),
        ("from helpers import optimizer\n", ["optimizer trains weight of a Linear"]),
        (CLOSURE.replace("step, {}", "step, optimizer"), ["net in step", "optimizer trains weight of a Linear"]),
        (CLOSURE, ["net in step", "optimizer in step"]),
        (
            HELPERS.replace("net = ", "class A:\n    net = ").replace("(net.", "(A.net."),
            ["A.net", "optimizer trains weight"],
        ),
        (HELPERS + "ftn_pytorch_state = ['optimizer']\n", ["optimizer trains weight of a Linear", "ftn_pytorch_state"]),
    ],
)
def test_a_network_that_no_name_leads_to_is_not_lost_in_silence(load, write, tmp_path, fails, text, pieces):
    write("helpers.py", HELPERS)
    runner = load(text)
    with fails("RESULT_TYPE", "is not written", *pieces):
        program.save(runner, str(tmp_path / "state"))
    assert not (tmp_path / "state").exists()


def test_a_hidden_network_without_an_optimizer_is_a_warning(load, write, tmp_path):
    write(
        "helpers.py", "import torch\nnet, fixed = torch.nn.Linear(2, 1), torch.nn.Linear(1, 1).requires_grad_(False)\n"
    )
    runner = load("import helpers\nsteps = []\n")
    with pytest.warns(process.FtnPytorchWarning, match="helpers.net is not kept") as warned:
        program.save(runner, str(tmp_path / "state"))
    assert len(warned) == 1
    program.save(load("import helpers\nnet = helpers.net\n"), str(tmp_path / "state"))


def test_the_log_tells_what_is_kept_and_what_is_not(load, tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(log, "info", lines.append)
    runner = load("import torch\nWIDTH, rate, a, table, d = 3, 0.1, [], {'f': print}, torch.device('cpu')\n")
    for _ in range(2):
        program.save(runner, str(tmp_path / "state"))
    assert lines == [
        f"{tmp_path}/model.py: kept in checkpoints: a; left out: WIDTH (no function assigns to it), "
        "rate (no function assigns to it), table (of type dict), d (of type torch.device)"
    ]
