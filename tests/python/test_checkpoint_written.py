# SPDX-License-Identifier: MIT
"""What code of a script writes to and no checkpoint can keep: named by the script. What is refused, the corpus has."""

import decimal
import gc
import math
import sys

import pytest
import torch
from promises.plain import text_of_file
from promises.scripts import corpus

import program
from ftn_pytorch.checkpoint import Checkpoint
from ftn_pytorch.system import process

KEPT = "import torch as t\nkept = t.zeros(1)\n"


def kept(runner, place):
    program.save(runner, place)
    objects = set(Checkpoint.read(place)["objects"])
    program.restore(runner, place)
    return objects


@pytest.mark.parametrize(
    ("name", "transient"),
    [("iterator", "data"), ("field", "a.it"), ("closure", "it in step"), ("attribute of a class", "A.last")]
    + [("field of a network", "net.got"), ("imported module", "moving.it")],
)
def test_a_script_names_what_a_restart_may_lose(name, transient, load, write, tmp_path, monkeypatch, fails):
    # Checkpoint.read finds classes by this name, which a runner of a test before frees when it is collected
    monkeypatch.delitem(sys.modules, "model", raising=False)
    gc.collect()
    script = corpus()[f"lost, {name}"]
    for beside, text in script.beside.items():
        write(beside, text)
    place = str(tmp_path / "state")
    runner = load(text_of_file(script))
    program.call(runner, "step")
    with fails("RESULT_TYPE", "cannot be written", *script.says["restarted"], "ftn_pytorch_transient"):
        program.save(runner, place)
    assert not (tmp_path / "state").exists()
    runner = load(f"ftn_pytorch_transient = [{transient!r}]\n{KEPT}" + text_of_file(script))
    program.call(runner, "step")
    found = kept(runner, place)
    assert "kept" in found and transient not in found


def test_a_variable_of_a_function_is_none_of_the_script_with_this_name(load, tmp_path):
    text = """
import torch
ftn_pytorch_transient = ["count"]
net, count = torch.nn.Linear(1, 1), 0

def make():
    count, seen = 0, []
    def step():
        nonlocal count
        count += 1
        seen.append(count)
        return count + len(seen)
    return step

step = make()
"""
    runner, place = load(text), str(tmp_path / "state")
    for _ in range(3):
        program.call(runner, "step")
    program.save(runner, place)
    again = load(text)
    program.restore(again, place)
    assert program.call(again, "step") == program.call(runner, "step") == 8


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("ftn_pytorch_transient = 'data'\n", "must be a list of names"),
        ("ftn_pytorch_transient = ['date']\ndata = iter([])\n", "names date, which it does not define"),
    ],
)
def test_a_wrong_list_of_what_is_transient_is_told(text, piece, load, tmp_path, fails):
    with fails("SCRIPT", piece):
        program.save(load(text), str(tmp_path / "state"))


# name: (script, what is kept of it beside "kept")
HARMLESS = {
    "logger": "import logging\nlogger = logging.getLogger('x')\ndef step(): logger.setLevel(10)\n",
    "open file": "import os\nlog = open(os.devnull, 'w')\ndef step(): log.write('x')\n",
    "lock": "import threading\nlock = threading.Lock()\ndef step():\n    with lock: lock.locked()\n",
    "executor": "from concurrent.futures import ThreadPoolExecutor as P\npool = P(1)\ndef step(): pool.submit(int)\n",
    "rows of CSV": "import csv, os\nrows = csv.writer(open(os.devnull, 'w'))\ndef step(): rows.writerow([1])\n",
    "field of an object": "import logging\nclass A:\n    def go(self): self.log = logging.getLogger('x')\n"
    "A.log = None\ndef step(): A().go()\n",
    "module that is imported late": "json = None\ndef step():\n    global json\n    import json\n",
    "registry": "HANDLERS = {}\ndef handles(f):\n    HANDLERS[f.__name__] = f\n    return f\n"
    "@handles\ndef step(): pass\n",
    "constants": "TABLE, rate = {'a': [1]}, 0.1\n"
    "def step():\n    table = dict(TABLE)\n    table['a'] = 2\n    return rate\n",
    "loader that is iterated": "import torch\nloader = torch.utils.data.DataLoader([1.0, 2.0])\n"
    "def step(): return [x for x in loader]\n",
    "made by setup": "import torch\ndevice = None\ndef ftn_pytorch_setup():\n    global device, act\n"
    "    device, act = 'cpu', torch.relu\ndef step(): return device\n",
    "settings that are read": "import argparse\nargs = argparse.Namespace(lr=0.1)\ndef step(): return args.lr\n",
}


@pytest.mark.parametrize("shape", HARMLESS)
def test_what_is_harmless_or_only_read_is_neither_refused_nor_kept(shape, load, tmp_path):
    runner = load(KEPT + HARMLESS[shape])
    program.call(runner, "step")
    assert kept(runner, str(tmp_path / "state")) - {"device"} == {"kept"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import os\ndef step(): os.environ['FTN_TEST_X'] = '1'\n", "os.environ"),
        ("import decimal\ndef step(): decimal.getcontext().prec += 1\n", "the precision of decimal"),
        ("import math\ndef step(): math.count = 3\n", "math.count"),
    ],
)
def test_settings_that_a_call_has_changed_are_told(text, name, load, tmp_path, monkeypatch):
    monkeypatch.delenv("FTN_TEST_X", raising=False)
    runner = load(KEPT + text)
    with decimal.localcontext():
        program.call(runner, "step")
        with pytest.warns(process.FtnPytorchWarning, match=f"{name} is a setting of the process or of a package"):
            program.save(runner, str(tmp_path / "state"))
    vars(math).pop("count", None)


def test_a_number_of_threads_that_the_program_sets_is_no_setting_of_the_script(load, tmp_path):
    threads = torch.get_num_threads()
    runner = load(KEPT + "import torch\ndef step(): torch.set_num_threads(5)\n")
    try:
        program.set_threads(3)
        program.save(runner, str(tmp_path / "state"))
        program.call(runner, "step")
        with pytest.warns(process.FtnPytorchWarning, match=r"torch\.get_num_threads\(\) is a setting of the process"):
            program.save(runner, str(tmp_path / "state"))
    finally:
        torch.set_num_threads(threads)


def test_a_list_that_is_read_through_another_name_stays_a_constant(load, tmp_path):
    text = "LEVELS, HISTORY = [1], []\ndef take(x): return sum(x)\ndef step(): HISTORY.append(take(LEVELS))\n"
    runner = load(text)
    program.call(runner, "step")
    assert kept(runner, str(tmp_path / "state")) == {"HISTORY"}


# ---- other scripts of the program

HELPER = "import torch\nnet = torch.nn.Linear(1, 1)"
OF_ITS_NAME = """
import torch

model = torch.nn.Linear(1, 1)


def train():
    model.weight.data.add_(1)
"""
OF_A_HELPER = """
import config


def train():
    config.net.weight.data.add_(1)
"""


@pytest.mark.parametrize(
    ("others", "net", "text"),
    [
        (OF_ITS_NAME, "model.model", OF_ITS_NAME),
        (OF_A_HELPER, "config.net", OF_ITS_NAME + "def of(config): return config['model']"),
        (OF_A_HELPER, "config.net", OF_ITS_NAME + "def name(): return 'config'"),
    ],
)
def test_what_another_script_has_is_left_alone_where_code_mentions_its_name(others, net, text, load, write, tmp_path):
    write("config.py", HELPER)
    other = load(others)
    script = load(text, name="model.py" if text == others else "two.py")
    module, name = net.split(".")
    weight = vars(sys.modules[module])[name].weight
    program.save(script, str(tmp_path / "state"))
    program.call(other, "train")
    learnt = weight.item()
    program.restore(script, str(tmp_path / "state"))
    assert weight.item() == learnt


@pytest.mark.parametrize("imports", ["import config", "config = __import__('config')"])
def test_what_another_script_has_is_kept_where_code_imports_it(imports, load, write, tmp_path):
    write("config.py", HELPER)
    load(OF_A_HELPER)
    script = load(f"def train():\n    {imports}\n    config.net.weight.data.add_(1)", name="two.py")
    program.call(script, "train")
    weight = sys.modules["config"].net.weight
    learnt = weight.item()
    program.save(script, str(tmp_path / "state"))
    program.call(script, "train")
    program.restore(script, str(tmp_path / "state"))
    assert weight.item() == learnt


def test_instances_of_a_script_go_on_from_each_other(load, tmp_path):
    one, two = load(OF_ITS_NAME), load(OF_ITS_NAME)
    program.call(one, "train")
    for there, here in ((one, two), (two, one)):
        program.save(there, str(tmp_path / "state"))
        program.restore(here, str(tmp_path / "state"))
        assert torch.equal(here._module.model.weight, there._module.model.weight)
