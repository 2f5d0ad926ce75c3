# SPDX-License-Identifier: MIT
"""benchmarks/models.py: the networks are those that the README names."""

import subprocess
import sys
from pathlib import Path

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
        [sys.executable, "-c", code], cwd=ROOT / "benchmarks", capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
