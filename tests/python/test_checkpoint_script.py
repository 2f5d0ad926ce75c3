# SPDX-License-Identifier: MIT
"""Scripts and saved models: what is kept without hooks, and checkpoints of scripts with hooks."""

import pytest
import torch

import program
from ftn_pytorch.checkpoint import Checkpoint, folder
from ftn_pytorch.system import process

TRAINING = """
import collections
import random
import torch

WIDTH, LEVELS = 8, [1, 2]
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, WIDTH), torch.nn.Dropout(0.5), torch.nn.Linear(WIDTH, 1))
alias = net
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
scaler = torch.amp.GradScaler("cpu")
buffer = collections.deque(maxlen=50)
mean = torch.zeros(2)
learning_rate = 0.01
steps, best = 0, None


@torch.inference_mode()
def ftn_pytorch_forward(x): return net(x)


def ftn_pytorch_train(x, target):
    global best
    buffer.append((x.clone(), target.clone()))
    mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
    order = list(range(len(buffer)))
    random.shuffle(order)
    optimizer.zero_grad()
    loss = sum(torch.nn.functional.mse_loss(net(buffer[i][0]), buffer[i][1]) for i in order[:4])
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    count()
    best = loss.item() if best is None else min(best, loss.item())
    return False, loss.item()


def count():
    global steps
    steps += 1
"""


def train(runner, calls):
    function = program.function(runner, "ftn_pytorch_train")
    return [function(torch.randn(4, 2), torch.randn(4, 1))[1] for _ in range(calls)]


def names(runner):
    return vars(runner._module)


def test_a_script_without_hooks_keeps_its_state(load, tmp_path):
    runner = load(TRAINING)
    train(runner, 6)
    program.save(runner, str(tmp_path / "state"))
    kept = Checkpoint.read(str(tmp_path / "state"))["objects"]
    assert set(kept) == {"net", "optimizer", "scheduler", "scaler", "buffer", "mean", "steps", "best"}
    losses, numbers = train(runner, 6), (names(runner)["steps"], names(runner)["best"])
    other = load(TRAINING.replace("WIDTH, LEVELS = 8, [1, 2]", "WIDTH, LEVELS = 8, [5]"))
    assert program.restore(other, str(tmp_path / "state")) == -1
    assert train(other, 6) == losses
    assert (names(other)["steps"], names(other)["best"]) == numbers
    assert names(other)["LEVELS"] == [5]


def test_checkpoints_of_a_script(load, tmp_path, fails):
    runner = load(TRAINING)
    for step in (10, 20, 30):
        train(runner, 1)
        program.checkpoint(runner, str(tmp_path / "steps"), keep=2, step=step)
    other = load(TRAINING)
    assert program.restore(other, str(tmp_path / "steps")) == 30
    assert names(other)["steps"] == 3
    assert program.restore(other, str(tmp_path / "steps"), step=20) == 20
    assert names(other)["steps"] == 2
    with fails("LOCKED", "through another module"):
        program.checkpoint(other, str(tmp_path / "steps"))
    del runner
    program.checkpoint(other, str(tmp_path / "steps"), keep=5)
    there = sorted(entry.name for entry in (tmp_path / "steps").iterdir())
    assert there == [".lock", *map(folder.name_of, (20, 21)), folder.name_of(30) + ".abandoned"]


def test_checkpoints_go_on_after_reload(load, tmp_path):
    runner = load(TRAINING)
    losses = train(runner, 2)
    program.checkpoint(runner, str(tmp_path / "steps"))
    program.reload(runner)
    assert names(runner)["steps"] == 0
    assert program.restore(runner, str(tmp_path / "steps")) == 1
    assert names(runner)["steps"] == 2 and names(runner)["best"] == min(losses)
    program.checkpoint(runner, str(tmp_path / "steps"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("steps = 0\ndef f():\n    global steps\n    steps += 1\n", {"steps"}),
        ("steps = 0\ndef f(): return steps\n", set()),
        ("STEPS = [1]\nsteps = [1]\ndef f(): STEPS.append(2)\n", {"STEPS"}),
        ("x = None\nclass A:\n    def f(self):\n        global x\n        x = 1\ndef f(): A().f()\n", {"x"}),
        ("n, name = 0, 'n'\ndef f(): exec(f'global n; {name} += 1')\n", {"n"}),
        ("a = []\nb = a\ndef f():\n    global a\n    a.append(a)\n    a = [a]\n", {"a"}),
        ("def f(): f.n = getattr(f, 'n', 0) + 1\n", {"f.n"}),
        (
            "import random\nfrom numpy.random import RandomState, default_rng\n"
            "a, b, c = random.Random(1), default_rng(), RandomState()\ndef f(): a.random()\n",
            set("abc"),
        ),
        ("import torch\nnets = [torch.nn.Linear(1, 1)]\nNETS = {'a': nets[0]}\ndef f(): pass\n", {"nets/0"}),
        ("import torch, functools\nf = lambda: 1\nt = torch.zeros(1)\nd = torch.device('cpu')\n", {"t"}),
        ("ftn_pytorch_state = ['a']\na, b = {}, {}\ndef f(): b['x'] = 1\n", {"a"}),
        ("table = {'f': print}\na = {}\ndef f(): a['x'] = 1\n", {"a"}),
        (
            "import ftn_pytorch\nother, a = [], []\nkeep = ftn_pytorch.Checkpoint(mine=a)\ndef f(): a.append(1)\n",
            {"mine"},
        ),
    ],
)
def test_what_is_state(load, tmp_path, text, kept):
    runner = load(text)
    program.call(runner, "f")
    program.save(runner, str(tmp_path / "state"))
    found = set(Checkpoint.read(str(tmp_path / "state"))["objects"])
    assert {name.removesuffix(" =") for name in found} == kept
    program.restore(load(text), str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("text", "status", "piece"),
    [
        ("ftn_pytorch_state = ['nothing']\n", "SCRIPT", "names nothing, which it does not define"),
        ("ftn_pytorch_state = 'net'\n", "SCRIPT", "must be a list of names"),
        ("ftn_pytorch_state = ['f']\nf = iter([])\n", "RESULT_TYPE", "f is of type builtins.list_iterator"),
        (
            "import ftn_pytorch as p\na, b = p.Checkpoint(x=[]), p.Checkpoint(x=[])\n",
            "HOOK",
            "has 2 objects Checkpoint",
        ),
        ("def ftn_pytorch_restore(name): pass\n", "HOOK", "no function ftn_pytorch_save, but ftn_pytorch_restore"),
    ],
)
def test_wrong_declarations_are_told(load, tmp_path, fails, text, status, piece):
    with fails(status, piece):
        program.save(load(text), str(tmp_path / "state"))


def test_one_hook_of_two_is_told(load, tmp_path, fails):
    runner = load("def ftn_pytorch_save(name): open(name, 'w').write('x')\n")
    program.save(runner, str(tmp_path / "state"))
    with fails("HOOK", "no function ftn_pytorch_restore, but ftn_pytorch_save"):
        program.restore(runner, str(tmp_path / "state"))
    with fails("HOOK", "no function ftn_pytorch_restore"):
        program.checkpoint(runner, str(tmp_path / "steps"))


def test_a_network_that_is_made_late_is_told_when_it_is_saved(load, tmp_path, fails):
    text = "import torch\nnet = None\ndef make():\n    global net\n    net = torch.nn.Linear(1, 1)\n"
    runner = load(text)
    program.save(runner, str(tmp_path / "state"))
    program.call(runner, "make")
    with fails("RESULT_TYPE", "net is of type torch.nn.modules.linear.Linear, made after the load", "model.py:5"):
        program.save(runner, str(tmp_path / "state"))
    program.restore(load(text), str(tmp_path / "state"))


def test_the_config_is_kept_and_compared(load, tmp_path):
    text = "import torch\nnet = torch.nn.Linear(1, 1)\ndef ftn_pytorch_setup(lr): pass\n"
    program.save(load(text, {"lr": 0.5}), str(tmp_path / "state"))
    assert Checkpoint.read(str(tmp_path / "state"))["config"] == {"lr": 0.5}
    program.restore(load(text, {"lr": 0.5}), str(tmp_path / "state"))
    with pytest.warns(process.FtnPytorchWarning, match="config: lr"):
        program.restore(load(text, {"lr": 0.1}), str(tmp_path / "state"))


def test_named_tuples_find_their_class_in_another_instance(load, tmp_path):
    text = "import collections\nPair = collections.namedtuple('Pair', 'a b')\npairs = []\n"
    text += "def f(): pairs.append(Pair(1, 2))\n"
    first = load(text)
    program.call(first, "f")
    program.save(first, str(tmp_path / "state"))
    second = load(text)
    program.restore(second, str(tmp_path / "state"))
    assert type(names(second)["pairs"][0]) is names(second)["Pair"] is not names(first)["Pair"]


# ---- scripts with hooks

HOOKS = """
value = 0
def ftn_pytorch_save(filename):
    with open(filename, "w") as f: f.write(str(value))
def ftn_pytorch_restore(filename):
    global value
    with open(filename) as f: value = int(f.read())
"""


def test_hooks_write_checkpoints_that_are_as_safe_as_others(load, tmp_path, fails):
    place = tmp_path / "steps"
    runner = load(HOOKS)
    for step in (1, 2, 3):
        names(runner)["value"] = step
        program.checkpoint(runner, str(place), keep=2)
    assert [entry.name for entry in sorted(place.iterdir())] == [".lock", *map(folder.name_of, (2, 3))]
    names(runner)["value"] = 0
    assert program.restore(runner, str(place)) == 3 and names(runner)["value"] == 3
    program.restore(runner, str(place / folder.name_of(2)))
    assert names(runner)["value"] == 2
    newest = place / folder.name_of(3)
    newest.write_bytes(newest.read_bytes().replace(b"3", b"4", 1))
    with fails("CORRUPT", "checksum"):
        program.restore(runner, str(place))
    with pytest.warns(process.FtnPytorchWarning, match="used instead"):
        assert program.restore(runner, str(place), fallback=True) == 2


def test_hooks_get_the_rank_and_names_that_are_theirs(load, tmp_path, monkeypatch, fails):
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setenv("PMI_RANK", "3")
    runner = load(HOOKS)
    program.save(runner, str(tmp_path / "state.%r"))
    assert (tmp_path / "state.3").read_text() == "0"
    program.restore(runner, str(tmp_path / "state.%r"))
    with fails("PYTHON", "FileNotFoundError"):
        program.restore(runner, str(tmp_path / "missing"))
    with fails("NO_CHECKPOINT", "missing"):
        program.restore(runner, str(tmp_path / "missing") + "/")


def test_hooks_and_their_absence_are_told_apart(load, tmp_path, fails):
    hooked, plain = load(HOOKS), load("a = []\n")
    program.checkpoint(hooked, str(tmp_path / "hooked"))
    program.checkpoint(plain, str(tmp_path / "plain"))
    with fails("FORMAT", "written by ftn_pytorch_save"):
        program.restore(plain, str(tmp_path / "hooked"))
    with fails("FORMAT", "was not written by ftn_pytorch_save"):
        program.restore(hooked, str(tmp_path / "plain"))
    assert Checkpoint.read(str(tmp_path / "hooked"))["archive"] == "hook"


def test_a_hook_that_writes_another_file_is_told(load, tmp_path, fails):
    text = HOOKS.replace("open(filename, ", "open(filename + '.npz', ")
    with fails("HOOK", "made no file of that name", "ending of their own"):
        program.checkpoint(load(text), str(tmp_path))


def test_a_hook_that_fails_leaves_nothing(load, tmp_path, fails):
    runner = load(HOOKS.replace("f.write(str(value))", "f.write('half'); raise ValueError('no')"))
    with fails("PYTHON", "ValueError: no"):
        program.checkpoint(runner, str(tmp_path / "steps"))
    assert [entry.name for entry in (tmp_path / "steps").iterdir()] == [".lock"]


# ---- saved models


@pytest.fixture
def model(tmp_path):
    def load():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
        torch.jit.script(net).save(str(tmp_path / "net.pt"))
        return program.load_model(str(tmp_path / "net.pt"))

    return load


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_saved_model_keeps_its_optimizer_in_checkpoints(model, tmp_path, fails):
    x, target = torch.randn(8, 2), torch.randn(8, 1)

    def losses(runner):
        return [runner._train(x, target)[1] for _ in range(5)]

    runner, place = model(), str(tmp_path / "steps")
    with fails("NO_CHECKPOINT"):
        program.restore(runner, place)
    runner.find("ftn_pytorch_create_optimizer_adam")(0.1)
    losses(runner)
    program.checkpoint(runner, place)
    expected = losses(runner)
    assert program.restore(runner, place) == 1
    assert losses(runner) == expected
    other = model()
    with fails("FORMAT", "there is no 'optimizer' here"):
        program.restore(other, place)
    other.find("ftn_pytorch_create_optimizer_adam")(0.7)
    assert program.restore(other, place) == 1
    assert losses(other) == expected


SCRIPTED = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls, self.text, self.seen = torch.nn.Linear(2, 1), 1000, "a", [1, 2]
        self.hidden, self.scale = torch.zeros(1), 0.5
    def forward(self, x):
        self.calls += 1
        self.hidden = self.scale * self.hidden + self.layer(x).sum().detach()
        return self.layer(x) * self.calls + self.hidden
torch.manual_seed(0)
net = torch.jit.script(Net())
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("declared", ["", "ftn_pytorch_state = ['net']"])
def test_attributes_of_torchscript_are_state(load, tmp_path, declared):
    x, place = torch.ones(3, 2), str(tmp_path / "steps")
    text = SCRIPTED + "outer = torch.nn.Sequential(net)\ndef step(x): return outer(x).detach()\n" + declared
    runner = load(text)
    program.call(runner, "step", x)
    program.checkpoint(runner, place)
    expected = [program.call(runner, "step", x) for _ in range(3)]
    edited = text.replace("0.5", "0.25")
    for other in (runner, load(text, name="again.py")):
        program.restore(other, place)
        assert all(map(torch.equal, expected, [program.call(other, "step", x) for _ in range(3)]))
    if not declared:
        here = load(edited, name="edited.py")
        program.restore(here, place)
        assert here.value("net").scale == 0.25, "what no call has changed comes from the script"
        assert here.value("net").calls == 1001


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_attributes_of_a_saved_model_are_restored(load, tmp_path):
    load(SCRIPTED).value("net").save(tmp_path / "net.pt")
    x, places = torch.ones(3, 2), [str(tmp_path / name) for name in ("saved.pt", "steps")]
    runner = program.load_model(str(tmp_path / "net.pt"))
    program.call(runner, "ftn_pytorch_forward", x)
    program.save(runner, places[0])
    program.checkpoint(runner, places[1])
    expected = [program.call(runner, "ftn_pytorch_forward", x) for _ in range(3)]
    for place in places:
        for other in (runner, program.load_model(str(tmp_path / "net.pt"))):
            program.restore(other, place)
            assert all(map(torch.equal, expected, [program.call(other, "ftn_pytorch_forward", x) for _ in range(3)]))
