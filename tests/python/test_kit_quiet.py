# SPDX-License-Identifier: MIT
"""Losses that have a graph are read without a warning of torch, which comes once in a process."""

import subprocess
import sys
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2] / "python"
SCRIPT = f"""
import sys
sys.path.insert(0, {str(PACKAGES)!r})
import torch
from ftn_pytorch.kit import Guard, Log

net = torch.nn.Linear(1, 1)
loss = net(torch.ones(1)).sum()
assert loss.requires_grad
Guard(net).allows(loss)
Guard(net).score(loss)
Log(sys.argv[1]).write(1, loss=loss)
"""


def test_a_loss_with_a_graph(tmp_path):
    command = [sys.executable, "-W", "error::UserWarning", "-c", SCRIPT, str(tmp_path / "log.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
