# SPDX-License-Identifier: MIT
"""What code of a script writes to and no checkpoint can keep: refused with path and line, or named."""

import gc
import sys

import pytest

import program
from ftn_pytorch.checkpoint import Checkpoint
from ftn_pytorch.checkpoint.writes import Analysis

# name: (script, path, line that writes)
REFUSED = {
    "iterator": (
        "data = iter([1.0, 2.0])\ndef step(): return next(data)\n",
        "data is of type builtins.list_iterator",
        "model.py:2 (def step(): return next(data))",
    ),
    "generator in a loop": (
        "data = (x for x in [1, 2])\ndef step():\n    for each in data:\n        return each\n",
        "data is of type builtins.generator",
        "model.py:3 (for each in data:)",
    ),
    "field": (
        "class A:\n    def __init__(self): self.it = iter([1, 2])\n    def go(self): return next(self.it)\n"
        "a = A()\ndef step(): return a.go()\n",
        "a.it is of type builtins.list_iterator",
        "model.py:3",
    ),
    "closure": (
        "def make():\n    it = iter([1, 2])\n    def step(): return next(it)\n    return step\nstep = make()\n",
        "it in step is of type builtins.list_iterator",
        "model.py:3",
    ),
    "attribute of a class": (
        "import weakref\nclass A:\n    last = None\ndef step():\n    A.last = weakref.ref(A)\n",
        "A.last is of type weakref.ReferenceType",
        "model.py:5",
    ),
    "field of a network": (
        "import torch\nclass Net(torch.nn.Linear):\n    def forward(self, x):\n        self.got = (y for y in x)\n"
        "        return x\nnet = Net(1, 1)\ndef step(): net(torch.ones(1))\n",
        "net.got is of type builtins.generator",
        "model.py:4",
    ),
    "lambda": (
        "f = lambda x: x\ndef step():\n    global f\n    f = lambda x: 2 * x\n",
        "f is the function step.<locals>.<lambda>",
        "model.py:4",
    ),
    "object of C": (
        "import hashlib\ndigest = hashlib.sha256()\ndef step(): digest.update(b'x')\n",
        "digest is of type _hashlib.HASH",
        "model.py:3",
    ),
    "defaultdict in a list": (
        "from collections import defaultdict\ntables = []\ndef step(): tables.append(defaultdict(lambda: 0))\n",
        "tables/0 is a defaultdict whose function has no name",
        "model.py:3",
    ),
    "imported module": (
        "import moving\ndef step(): return moving.go()\n",
        "moving.it is of type builtins.list_iterator",
        "moving.py:2",
    ),
}


@pytest.mark.parametrize("shape", REFUSED)
def test_what_is_written_to_and_cannot_be_kept_is_refused(shape, load, write, tmp_path, fails):
    write("moving.py", "it = iter([1, 2])\ndef go(): return next(it)\n")
    text, path, line = REFUSED[shape]
    runner = load(text)
    program.call(runner, "step")
    with fails("RESULT_TYPE", "cannot be written", path, line, "ftn_pytorch_transient"):
        program.save(runner, str(tmp_path / "state"))
    assert not (tmp_path / "state").exists()


def kept(runner, place):
    program.save(runner, place)
    objects = set(Checkpoint.read(place)["objects"])
    program.restore(runner, place)
    return objects


@pytest.mark.parametrize(
    ("shape", "transient"),
    [("iterator", "data"), ("field", "a.it"), ("closure", "it in step"), ("attribute of a class", "A.last")]
    + [("field of a network", "net.got"), ("imported module", "moving.it")],
)
def test_a_script_names_what_a_restart_may_lose(shape, transient, load, write, tmp_path, monkeypatch):
    # Checkpoint.read finds classes by this name, which a runner of a test before frees when it is collected
    monkeypatch.delitem(sys.modules, "model", raising=False)
    gc.collect()
    write("moving.py", "it = iter([1, 2])\ndef go(): return next(it)\n")
    runner = load(f"ftn_pytorch_transient = [{transient!r}]\nkept = []\n" + REFUSED[shape][0])
    program.call(runner, "step")
    found = kept(runner, str(tmp_path / "state"))
    assert "kept" in found and transient not in found


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("ftn_pytorch_transient = 'data'\n", "must be a list of names"),
        ("ftn_pytorch_transient = ['date']\ndata = iter([])\n", "names date, which it does not define"),
    ],
)
def test_a_wrong_list_of_what_is_transient_is_told(text, piece, load, tmp_path, fails):
    with fails("SCRIPT", piece):
        program.save(load(text + "kept = []\n"), str(tmp_path / "state"))


# name: (script, what is kept of it beside "kept")
HARMLESS = {
    "logger": "import logging\nlogger = logging.getLogger('x')\ndef step(): logger.setLevel(10)\n",
    "open file": "import os\nlog = open(os.devnull, 'w')\ndef step(): log.write('x')\n",
    "lock": "import threading\nlock = threading.Lock()\ndef step():\n    with lock: lock.locked()\n",
    "executor": "from concurrent.futures import ThreadPoolExecutor as P\npool = P(1)\ndef step(): pool.submit(int)\n",
    "rows of CSV": "import csv, os\nrows = csv.writer(open(os.devnull, 'w'))\ndef step(): rows.writerow([1])\n",
    "field of an object": "import logging\nclass A:\n    def go(self): self.log = logging.getLogger('x')\n"
    "A.log = None\ndef step(): A().go()\n",
    "settings of a package": "import torch, os\ndef step():\n    torch.backends.cudnn.benchmark = False\n"
    "    os.environ['FTN_TEST_X'] = '1'\n",
    "module that is imported late": "json = None\ndef step():\n    global json\n    import json\n",
    "registry": "HANDLERS = {}\ndef handles(f):\n    HANDLERS[f.__name__] = f\n    return f\n"
    "@handles\ndef step(): pass\n",
    "constants": "import torch\nMEAN, TABLE, rate = torch.ones(2), {'a': [1]}, 0.1\n"
    "def step():\n    copy = MEAN.clone()\n    copy += 1\n    table = dict(TABLE)\n    table['a'] = 2\n"
    "    return MEAN * rate\n",
    "loader that is iterated": "import torch\nloader = torch.utils.data.DataLoader([1.0, 2.0])\n"
    "def step(): return [x for x in loader]\n",
    "made by setup": "import torch\ndevice = None\ndef ftn_pytorch_setup():\n    global device, act\n"
    "    device, act = 'cpu', torch.relu\ndef step(): return device\n",
    "settings that are read": "import argparse\nargs = argparse.Namespace(lr=0.1)\ndef step(): return args.lr\n",
}


@pytest.mark.parametrize("shape", HARMLESS)
def test_what_is_harmless_or_only_read_is_neither_refused_nor_kept(shape, load, tmp_path):
    runner = load("kept = []\n" + HARMLESS[shape])
    program.call(runner, "step")
    assert kept(runner, str(tmp_path / "state")) - {"device"} == {"kept"}


def test_a_list_that_is_read_through_another_name_stays_a_constant(load, tmp_path):
    text = "LEVELS, HISTORY = [1], []\ndef take(x): return sum(x)\ndef step(): HISTORY.append(take(LEVELS))\n"
    assert kept(load(text), str(tmp_path / "state")) == {"HISTORY"}


WALKER = """
class Node: pass
tree = Node()
{fields}
def visit(node, found):
    if node is None:
        return
{calls}
    node.mark.append(found)
def step(): visit(tree, 1)
"""


@pytest.mark.parametrize("count", [2, 14])
def test_a_function_that_goes_down_a_tree_by_itself(count, load, write, tmp_path):
    """Each way through its fields is another one, five steps deep: fourteen fields have half a million."""
    names = [f"part{number}" for number in range(count)]
    fields = "\n".join(f"tree.{name} = None" for name in names) + "\ntree.mark = []"
    calls = "\n".join(f"    visit(node.{name}, found)" for name in names)
    text = WALKER.format(fields=fields, calls=calls)
    analysis = Analysis({write("walker.py", text): text})
    assert 20 < sum(map(len, analysis.events.values())) < 10_000
    runner = load(text)
    runner.find("step")()
    runner.checkpoint(str(tmp_path / "run"), 1, 1)
    again = load(text)
    again.restore(str(tmp_path / "run"))
    assert vars(again._module)["tree"].mark == [1]
