# SPDX-License-Identifier: MIT
"""benchmarks/models.py: the networks are those that the README names."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_cgdrag_is_the_published_network():
    """86 dense layers and 375,228 parameters; one column alone gives what it gives among others."""
    code = """
import models, torch
net = models.make("cgdrag", 3)
assert sum(isinstance(layer, torch.nn.Linear) for layer in net.modules()) == 86
assert sum(parameter.numel() for parameter in net.parameters()) == 375_228
inputs = models.make_inputs("cgdrag", 3)
assert sum(value[0].numel() for value in inputs) == 42
result = net(*inputs)
assert result.shape == (3, 40) and result.dtype == torch.float64
torch.testing.assert_close(net(*(value[1:2] for value in inputs)), result[1:2], rtol=0, atol=1e-12)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "benchmarks", capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr


PRETENDED = """
import sys
def main(command):
    {action}
"""


def write_package(folder, action):
    """A package ftn_pytorch whose export does something else."""
    package = folder / "ftn_pytorch"
    package.mkdir(exist_ok=True)
    for name, text in {"__init__": "", "errors": "", "__main__": PRETENDED.format(action=action)}.items():
        (package / f"{name}.py").write_text(text)


def run_models(folder, package):
    """What models.py says about the recording of the MLP, and the reason if there is none."""
    command = [sys.executable, "benchmarks/models.py", str(folder / "models"), "--case", "mlp", "--size", "1"]
    done = subprocess.run(
        [*command, "--formats", "ftr"],
        cwd=ROOT,
        env={**os.environ, "BENCH_PACKAGE": str(package)},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    manifest = json.loads((folder / "models" / "manifest.json").read_text())
    return done.stdout, manifest["missing"].get("mlp.ftr")


def test_a_recording_is_written_anew_by_another_version_of_the_library(tmp_path):
    writes = "open(command[command.index('--output') + 1], 'w').write(' '.join(command))"
    write_package(tmp_path, writes)
    said, reason = run_models(tmp_path, tmp_path)
    assert "mlp.ftr: written" in said and reason is None
    command = (tmp_path / "models" / "mlp.ftr").read_text()
    assert "export" in command and "--to recording" in command and "--input 2x16:float32" in command
    assert "--target" not in command and "--batch" not in command and "recorded=true" in command
    assert run_models(tmp_path, tmp_path) == ("", None)
    write_package(tmp_path, "print('other shapes', file=sys.stderr); return 2")
    said, reason = run_models(tmp_path, tmp_path)
    assert reason == "RuntimeError: other shapes" and reason in said
    assert not (tmp_path / "models" / "mlp.ftr").exists()
    write_package(tmp_path, writes)
    assert run_models(tmp_path, tmp_path)[1] is None


def test_without_the_library_there_is_no_recording(tmp_path):
    (tmp_path / "ftn_pytorch").mkdir()
    (tmp_path / "ftn_pytorch" / "__init__.py").write_text("")
    assert run_models(tmp_path, tmp_path)[1] == "ImportError: No module named 'ftn_pytorch.errors'"
