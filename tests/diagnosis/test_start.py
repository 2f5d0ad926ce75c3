# SPDX-License-Identifier: MIT
"""What the start of a program asks file systems: operations on paths, counted by strace. No times."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "ftn_pytorch"
NUMPY = "import numpy\ndef ftn_pytorch_forward(x):\n    return 2 * numpy.asarray(x)\n"
TORCH = "import torch\nnet = torch.nn.Linear(3, 3)\ndef ftn_pytorch_forward(x):\n    return net(x)\n"
OPTIMIZER = TORCH + "optimizer = torch.optim.Adam(net.parameters())\n"
TRAIN = """
def ftn_pytorch_train(x, target):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    return False, loss
"""
BACKGROUND = (
    OPTIMIZER
    + "from ftn_pytorch.kit import Background\n"
    + TRAIN.replace("ftn_pytorch_train", "step")
    + "background = Background(step, net, process=True)\n"
    + "def ftn_pytorch_train(x, target):\n    return background.submit(x, target)\n"
)
PATH = re.compile(r'"([^"]+)"')
# where the loader looks for a library that is compiled for this very processor: more places on some than on others
OF_PROCESSOR = re.compile(r"/(tls|haswell|avx512_1|x86_64|glibc-hwcaps)(/|$)")


def can_trace():
    """Containers may forbid it."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_trace(), reason="needs strace")


@pytest.fixture
def paths(tmp_path):
    """paths(*command, NAME=value, ...): the paths of all operations of a second run; the first writes bytecode."""

    def paths(*command, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FTN_", "OMPI_", "PYTHON"))}
        environment = {**kept, "FTN_PYTORCH_PYTHON": sys.executable, "OMP_NUM_THREADS": "1", **variables}
        trace = tmp_path / "trace"
        for tool in ([], ["strace", "-f", "-qq", "-e", "trace=%file", "-e", "signal=none", "-o", trace]):
            words = [*tool, *command]
            options = {"env": environment, "cwd": tmp_path, "timeout": 600, "check": False}
            done = subprocess.run(words, capture_output=True, text=True, **options)
            assert done.returncode == 0 and "_ERR_" not in done.stdout, done.stdout + done.stderr
        lines = trace.read_text().splitlines()
        # fstat of newer C libraries is one of an empty path, and getcwd asks for none
        found = [path[1] for line in lines if "getcwd(" not in line and (path := PATH.search(line))]
        found = [path for path in found if not OF_PROCESSOR.search(path)]
        # real paths are looked up folder by folder: how often, says the place of the checkout
        above = {str(folder) for place in (ROOT, sys.prefix, tmp_path) for folder in Path(place).parents}
        return [path for path in found if path not in above]

    return paths


@pytest.fixture
def program(build_dir):
    return build_dir / "tests" / "diagnosis" / "diagnosis_program"


@pytest.fixture
def packed(command, build_dir, tmp_path):
    """packed(script): the file of ``python -m ftn_pytorch pack``."""

    def packed(script):
        words = [*ran(tmp_path, script)[0].split("=")[1:], "--input", "2x3", "--output", tmp_path / "closure.pack"]
        command("pack", *words, environment={"ftn_pytorch_ROOT": str(build_dir)}, cwd=tmp_path, cold=True)
        return str(tmp_path / "closure.pack")

    return packed


def ran(folder, script):
    file = folder / "closure.py"
    file.write_text(script)
    return f"load={file}", "forward"


def test_init(paths, program):
    """From the first operation to the last one of the end."""
    assert len(paths(program, "init")) - len(paths(sys.executable, "-c", "")) < 290


def test_numpy_script(paths, program, tmp_path):
    found = paths(program, *ran(tmp_path, NUMPY))
    assert len(found) - len(paths(sys.executable, "-c", "import numpy")) < 340
    assert not [path for path in found if "libcuda.so" in path]
    modules = [path for path in found if path.endswith(".pyc") and Path(path).resolve().is_relative_to(PACKAGE)]
    assert 0 < len(modules) < 35


def test_numpy_script_with_a_pack(paths, program, packed, tmp_path):
    """Of modules, only those before the pack is in use are looked for, and each of this package has a look."""
    file = packed(NUMPY)
    found = paths(program, *ran(tmp_path, NUMPY), FTN_PYTORCH_PACK=file)
    assert len(found) - len(paths(sys.executable, "-c", "")) < 340
    assert found.count(file) == 1
    late = found[found.index(file) :]
    assert not [path for path in late if path.endswith(".pyc")]


def test_torch_script(paths, program, tmp_path):
    """inspect is not asked for the file of each module, each time that torch registers an operator."""
    found = paths(program, *ran(tmp_path, TORCH))
    assert len(found) < len(paths(sys.executable, "-c", "import torch")) / 2
    assert len(found) < len(paths(program, *ran(tmp_path, TORCH), FTN_PYTORCH_PLAIN_IMPORT="1")) / 2


@pytest.mark.slow
def test_torch_script_with_an_optimizer(paths, program, tmp_path):
    plain = "import torch; torch.optim.Adam(torch.nn.Linear(3, 3).parameters())"
    assert len(paths(program, *ran(tmp_path, OPTIMIZER))) < len(paths(sys.executable, "-c", plain)) / 2


@pytest.mark.slow
def test_torch_script_with_an_optimizer_and_a_pack(paths, program, packed, tmp_path):
    script = OPTIMIZER + TRAIN
    file = packed(script)
    assert len(paths(program, *ran(tmp_path, script), "train", FTN_PYTORCH_PACK=file)) < 1000


@pytest.mark.slow
def test_a_process_that_trains(paths, program, packed, tmp_path):
    """It imports torch as the program does, and reads the same pack."""
    words = (program, *ran(tmp_path, BACKGROUND), "train")
    found = paths(*words)
    assert len(found) < len(paths(*words, FTN_PYTORCH_PLAIN_IMPORT="1")) / 2
    file = packed(BACKGROUND)
    found = paths(*words, FTN_PYTORCH_PACK=file)
    assert found.count(file) == 2
    assert len(found) < 2600
