# SPDX-License-Identifier: MIT
"""Each command, called in the folder of a run with a script that writes: the files of the run stay as they are."""

import os
from pathlib import Path

import pytest
import warm

from ftn_pytorch import __main__

SCRIPT = """
import torch
from ftn_pytorch import Checkpoint
from ftn_pytorch.kit import Log, Replay

torch.manual_seed(1)
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
log, replay = Log("run/log.csv"), Replay(100)
beside = Log("run/beside.csv")
beside.write(1, loss=1.0)
checkpoint = Checkpoint(net=net)

@torch.no_grad()
def ftn_pytorch_forward(x):
    beside.write((beside.step or 0) + 1, loss=1.0)
    checkpoint.save("run/net.pt")
    return net(x)

def ftn_pytorch_train(x, target):
    replay.add(x, target)
    loss = torch.nn.functional.mse_loss(net(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.write((log.step or 0) + 1, loss=loss)
    checkpoint.write("run/checkpoints")
    replay.export("run/samples.npz")
    return False, loss
"""
# What a program does: the calls are recorded, and the run leaves its files.
PROGRAM = """
from ftn_pytorch import _embed
import torch
_embed.on_start({"adopted": "1"})
runner = _embed.load(0, "closure.py", {}, {})
x = torch.ones(32, 16)
for function, given in 3 * [("ftn_pytorch_forward", (x,)), ("ftn_pytorch_train", (x, x[:, :4]))]:
    call = _embed.record_begin(runner, function, 0, given, {})
    _embed.record_end(call, _embed.bind(runner, function, 0)[0](*given), None)
_embed.checkpoint(runner, "run/state", 3, 5)
_embed.save(runner, "run/state.one")
_embed.at_exit()
"""
SHAPES = ("--input", "32x16", "--target", "32x4")
HOOKS = ("closure.py", "--to", "recording", *SHAPES)
CALLS = {
    "doctor": [(0,)],
    "check": [
        (0, "closure.py", *SHAPES),
        (0, "closure.py", *SHAPES, "--time"),
        (2, "run/state.one"),
        (0, "run/calls"),
        (0, "run/calls", "--call", "2", "--alone"),
    ],
    "export": [
        (0, "closure.py:net", "--to", "pt", "--input", "32x16", "-o", "made/net.pt"),
        (0, "closure.py:net", "--to", "pt2", "--input", "32x16", "-o", "made/net.pt2", "--checkpoint", "run/state"),
        (2, *HOOKS, "-o", "made/net.ftr"),
        (2, *HOOKS, "-o", "made/net.ftr", "--checkpoint", "run/state.one"),
    ],
    "build-direct": [(2, "--into", "made")],
    "pack": [(0, "closure.py", *SHAPES, "-o", "made/closure.pack")],
    "lint": [(0, "program.f90")],
    "plot": [(2, "run"), (0, "run", "-o", "made/picture")],
    "modules": [(0,)],
    "new": [(0, "made/project")],
}
"""How each command is called, and its exit code: hooks that log are called, and cannot be recorded."""


def content(folder: Path) -> dict[str, bytes]:
    """All files of a run by name."""
    found = [file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return {str(file): file.read_bytes() for file in found if (folder / "made") not in file.parents}


def test_each_command_has_a_call() -> None:
    assert set(CALLS) == {"doctor", *__main__._COMMANDS}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """The folder of a run, with a log, checkpoints, recorded calls, samples and pictures."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "closure.py").write_text(SCRIPT)
    (folder / "program.f90").write_text("end program\n")
    package = Path(__file__).resolve().parents[2] / "python"
    variables = {**os.environ, "PYTHONPATH": str(package), "FTN_PYTORCH_RECORD": "run/calls"}
    done = warm.run(["-c", PROGRAM], env=variables, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "run" / "run.png").write_bytes(b"a picture of mine")
    (folder / "made").mkdir()
    return folder


@pytest.mark.parametrize(
    "name, code, arguments", [(name, *c[:1], c[1:]) for name, calls in CALLS.items() for c in calls]
)
def test_files_of_a_run_stay_as_they_are(run_folder, command, build_dir, name, code, arguments) -> None:
    before = content(run_folder)
    assert before[str(run_folder / "run" / "log.csv")].count(b"\n") == 4 and len(before) > 20
    command(name, *arguments, code=code, environment={"ftn_pytorch_ROOT": str(build_dir)}, cwd=run_folder)
    assert content(run_folder) == before
