# SPDX-License-Identifier: MIT
"""What a script keeps without hooks: objects of its own classes, tensors in containers, and what would be lost."""

import json
import sys
import zipfile
from pathlib import Path

import pytest
import torch

import program
from ftn_pytorch.checkpoint import Checkpoint, base, stateful
from ftn_pytorch.system import log

BEFORE = Path(__file__).parent / "checkpoints_of_before"


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


class Own:
    pass


def test_a_file_makes_no_objects_of_classes_that_are_not_the_users_own(tmp_path, fails):
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


def test_a_field_that_cannot_be_kept_is_an_error_once_it_has_changed(load, tmp_path, fails):
    text = """
    class Settings:
        def __init__(self): self.rate, self.batches = 0.5, iter([1, 2])
    settings = Settings()
    def read(): return settings.rate
    def step(): return next(settings.batches)
    """
    runner = load(text)
    call(runner, "read")
    program.save(runner, str(tmp_path / "state"))
    call(runner, "step")
    with fails("RESULT_TYPE", "settings.batches is of type builtins.list_iterator", "return next(settings.batches)"):
        program.save(runner, str(tmp_path / "state"))


def test_arrays_in_foreign_objects_are_kept(again):
    text = """
    import torch
    normal = torch.distributions.Normal(torch.zeros(1), 1.0)
    def change(): normal.loc.add_(3)
    """
    one, two = again(text)
    assert two["normal"].loc.item() == one["normal"].loc.item() == 3


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_earlier_formats_are_read(version, load, tmp_path):
    runner = load((BEFORE / "script.py").read_text())
    expected = json.loads((BEFORE / f"expected{version}.json").read_text())
    assert program.restore(runner, str(BEFORE / f"format{version}.ckpt")) == 3
    assert [call(runner, "step") for _ in range(3)] == expected


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
        ('"more": [', '"c": torch.zeros(1, requires_grad=True), "more": [', "the file has no 'params/c'"),
        ("[torch.ones(1, r", "[torch.zeros(1), torch.ones(1, r", "the file has no 'params/more/1'"),
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


def test_states_that_are_made_for_the_file_stay_apart(tmp_path):
    class Counted:
        """Has a state that is made when it is asked for, and gone afterwards."""

        def __init__(self, number):
            self.number = number

        def state_dict(self):
            return {"number": torch.full((1000,), float(self.number))}

        def load_state_dict(self, state):
            self.number = state["number"].unique().tolist()

    counted = [Counted(number) for number in range(20)]
    Checkpoint(counted=counted).save(tmp_path / "state")
    Checkpoint(counted=counted).restore(tmp_path / "state")
    assert [each.number for each in counted] == [[number] for number in range(20)]


def test_tensors_that_cannot_be_changed_are_replaced(tmp_path):
    with torch.inference_mode():
        fixed = torch.zeros(2)
    values = {"fixed": fixed, "wide": torch.zeros(1).expand(2)}
    path = Checkpoint(values={"fixed": torch.ones(2), "wide": torch.arange(2.0)}).save(str(tmp_path / "state"))
    Checkpoint(values=values).restore(path)
    assert torch.equal(values["fixed"], torch.ones(2)) and torch.equal(values["wide"], torch.arange(2.0))


WINDOWS = """
import numpy as np
import torch
base, array = torch.zeros(1), np.zeros(6)
wide, row = base.expand(3), np.broadcast_to(array[:2], (3, 2))
windows = np.lib.stride_tricks.sliding_window_view(array, 3)

def change():
    base.fill_(np.nan if CASE else 2.0)
    array[:] = range(6)
"""


@pytest.mark.parametrize("case", [0, 1])
def test_what_shows_one_number_in_several_places_still_shows_it_after_a_restart(again, case):
    one, two = again(WINDOWS.replace("CASE", str(case)))
    assert torch.equal(two["wide"].isnan(), one["wide"].isnan()) and two["windows"].tolist() == one["windows"].tolist()
    two["base"].fill_(7.0)
    two["array"][1] = 9.0
    assert two["wide"].tolist() == [7.0] * 3, "it is a view as after the load"
    assert two["windows"][0, 1] == 9.0 and two["row"][2].tolist() == [0.0, 9.0]


def test_a_network_that_torch_could_not_load_is_refused_when_it_is_saved(load, tmp_path, fails):
    runner = load("import torch\nnet = torch.nn.Linear(1, 1)\nnet.register_buffer('wide', torch.zeros(1).expand(3))\n")
    with fails("RESULT_TYPE", "net.wide has elements that are one in memory. Clone it"):
        program.save(runner, str(tmp_path / "state"))


# ---- what no name of the script leads to

HELPERS = "import torch\nnet = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
STEP = """
def step(net, optimizer):
    optimizer.zero_grad()
    loss = net(torch.ones(1, 2)).square().sum()
    loss.backward()
    optimizer.step()
    return loss.item()
"""
CLOSURE = (
    HELPERS.replace("net =", "def make():\n    net =").replace("\noptimizer", "\n    optimizer")
    + "    return lambda: step(net, optimizer)\nchange = make()\n"
    + STEP
)


@pytest.mark.parametrize(
    "text",
    [
        "import helpers, torch\noptimizer = torch.optim.SGD(helpers.net.parameters(), 0.1)\n"
        "def change(): return helpers.step(helpers.net, optimizer)\n",
        "import helpers\ndef change(): return helpers.step(helpers.net, helpers.optimizer)\n",
        "from helpers import step\ndef change(): return step(*vars(__import__('helpers')).get('both'))\n",
        CLOSURE,
        HELPERS.replace("net = ", "class A:\n    net = ").replace("(net.", "(A.net.")
        + STEP
        + "def change(): return step(A.net, optimizer)\n",
        "import torch\noptimizer = torch.optim.SGD([torch.zeros(2, requires_grad=True)], 0.1)\n"
        "def change():\n    p = optimizer.param_groups[0]['params'][0]\n    p.grad = torch.ones(2)\n"
        "    optimizer.step()\n    return p.sum().item()\n",
    ],
    ids=["network", "both", "function", "closure", "class", "optimizer"],
)
def test_a_network_is_kept_wherever_it_is(load, write, tmp_path, text, monkeypatch):
    write("helpers.py", HELPERS + "both = net, optimizer\n" + STEP)
    runner = load(text)
    first = call(runner, "change")
    program.save(runner, str(tmp_path / "state"))
    expected = call(runner, "change")
    assert expected != first
    monkeypatch.delitem(sys.modules, "helpers", raising=False)
    other = load(text)
    program.restore(other, str(tmp_path / "state"))
    assert call(other, "change") == expected


def test_a_network_that_a_declaration_leaves_out_is_not_lost_in_silence(load, tmp_path, fails):
    runner = load(HELPERS + "ftn_pytorch_state = ['optimizer']\n")
    with fails("RESULT_TYPE", "is not written", "optimizer trains weight of a Linear", "ftn_pytorch_state"):
        program.save(runner, str(tmp_path / "state"))
    assert not (tmp_path / "state").exists()


def test_the_log_tells_what_is_kept_and_what_is_not(load, tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(log, "info", lines.append)
    runner = load("json, rate, a = None, 0.1, []\ndef step():\n    global json\n    import json\n    a.append(1)\n")
    for _ in range(2):
        call(runner, "step")
        program.save(runner, str(tmp_path / "state"))
    assert lines == [f"{tmp_path}/model.py: kept in checkpoints: a; left out: json (of type module)"]


def test_dropout_of_recurrent_networks_on_a_gpu_is_told(monkeypatch):
    """cuDNN draws for it, from a state that nobody can ask for."""
    nets = torch.nn.ModuleDict({"plain": torch.nn.GRU(2, 2), "random": torch.nn.GRU(2, 2, 2, dropout=0.5)})
    assert stateful.lost_of_network(nets, "nets") == {}
    monkeypatch.setattr(torch.nn.Parameter, "is_cuda", True)
    assert list(stateful.lost_of_network(nets, "nets")) == ["nets.random"]
