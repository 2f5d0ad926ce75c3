# SPDX-License-Identifier: MIT
"""Whether a script gets torch tensors or NumPy arrays."""

import numpy
import pytest

import program

HOOK = "def ftn_pytorch_forward(x): return x\n"

NUMPY_SCRIPTS = {
    "nothing": "",
    "numpy": "import numpy\n",
    "torch in a text": "name = 'torch'\n",
    "torch in a function that is no hook": "def plot():\n    import torch\n",
    "told so": "import torch\nftn_pytorch_framework = 'numpy'\n",
}
TORCH_SCRIPTS = {
    "module": "import torch\n",
    "module under another name": "import torch as th\n",
    "submodule": "from torch.nn import functional\n",
    "function": "from torch import relu\n",
    "class": "from torch.nn import Linear\n",
    "object": "import torch\nnet = torch.nn.Linear(1, 1)\ndel torch\n",
    "own class": "import torch\nclass Net(torch.nn.Module): pass\ndel torch\n",
    "hook": "def ftn_pytorch_train(x):\n    def step():\n        from torch.optim import SGD\n",
    "setup": "def ftn_pytorch_setup():\n    global torch\n    import torch\n",
    "neighbour": "import nets\n",
    "class of a neighbour": "from nets import Net\n",
    "function of a neighbour": "from nets import call\n",
    "neighbour of a neighbour": "import further\n",
    "told so": "ftn_pytorch_framework = 'torch'\n",
}


@pytest.fixture
def torch():
    """torch, imported before the script: as after another script that used it."""
    return pytest.importorskip("torch")


@pytest.mark.parametrize("text", NUMPY_SCRIPTS.values(), ids=NUMPY_SCRIPTS.keys())
def test_script_without_torch_gets_numpy_arrays_also_after_others_used_it(torch, load, text):
    assert load(text + HOOK).framework == "numpy"


@pytest.mark.parametrize("text", TORCH_SCRIPTS.values(), ids=TORCH_SCRIPTS.keys())
def test_script_with_torch_gets_tensors(torch, load, write, text):
    write("nets.py", "import torch\nclass Net(torch.nn.Module): pass\ndef call(x): return torch.relu(x)\n")
    write("further.py", "import nets\n")
    assert load(text + HOOK).framework == "torch"


def test_unknown_framework_is_refused(load, fails):
    with fails("SCRIPT", "ftn_pytorch_framework", "'jax'", '"torch" or "numpy"'):
        load("ftn_pytorch_framework = 'jax'\n")


def test_torch_is_not_imported_for_a_script_without_it(write, python):
    path = write("model.py", "def ftn_pytorch_forward(x): return x.sum()\n")
    code = """
        import sys, numpy, program
        runner = program.load(sys.argv[1])
        forward = program.function(runner, "ftn_pytorch_forward")
        program.first_call(runner, "ftn_pytorch_forward", (numpy.ones(3),), {})
        program.unpack(forward(numpy.ones(3)))
        program.set_threads(1)
        program.at_exit()
        print("torch" in sys.modules)
    """
    assert python(code, path) == "False\n"


def test_numpy_is_not_imported_by_this_package(python):
    code = "import program, sys; program.unpack(1.0); print({'numpy', 'torch'} & set(sys.modules))"
    assert python(code) == "set()\n"


def test_torch_that_comes_by_a_hidden_way_counts_for_every_instance(write, python):
    pytest.importorskip("torch")
    path = write("model.py", "import importlib\nimportlib.import_module('torch')\n")
    code = """
        import program, sys
        runners = [program.load(sys.argv[1]) for _ in range(2)]
        program.reload(runners[0])
        print(*[runner.framework for runner in runners])
    """
    assert python(code, path) == "torch torch\n"


@pytest.mark.parametrize("header", ["", "import torch\n"])
def test_arrays_of_the_configuration_are_copies_in_the_framework_of_the_script(torch, load, header):
    given = numpy.arange(3.0)
    body = "    global kept\n    weights += 1\n    kept = weights\n"
    runner = load(f"{header}def ftn_pytorch_setup(weights):\n{body}def get(): return kept\n", {"weights": given})
    for _ in range(2):
        kept = program.call(runner, "get")
        assert isinstance(kept, torch.Tensor if header else numpy.ndarray)
        assert kept.tolist() == [1, 2, 3]
        program.reload(runner)
    assert given.tolist() == [0, 1, 2]


def test_tensors_of_the_configuration_become_what_the_script_uses(torch, load):
    text = "def ftn_pytorch_setup(weights):\n    global kept\n    kept = weights\ndef get(): return kept\n"
    kept = program.call(load(text, {"weights": torch.ones(2)}), "get")
    assert isinstance(kept, numpy.ndarray)
