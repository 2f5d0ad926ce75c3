# SPDX-License-Identifier: MIT
"""The script of docs/kit/schedules.md with schedules of torch: the learning rate it leads to, also after a restart."""

import re
import sys
from pathlib import Path

import pytest
import torch

import program

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kit" / "schedules.md"


def script():
    return re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]


def rates(runner, first, last):
    """Noise cannot be learnt, so the held-out loss stays where it is."""
    train = program.function(runner, "ftn_pytorch_train")
    for number in range(first, last):
        random = torch.Generator().manual_seed(number)
        train(torch.randn(8, 5, generator=random), torch.randn(8, 1, generator=random))
        yield sys.modules[Path(runner.path).stem].optimizer.param_groups[0]["lr"]


def test_schedules_go_on_after_a_restart(load, tmp_path):
    torch.manual_seed(0)
    whole = list(rates(load(script(), name="whole.py"), 0, 200))
    assert whole[0] == pytest.approx(1e-5 + (1e-3 - 1e-5) / 20)
    assert whole[19] == pytest.approx(1e-3)
    assert whole[-1] == pytest.approx(5e-4), "the plateau halves it"
    torch.manual_seed(0)
    runner = load(script(), name="first.py")
    found = list(rates(runner, 0, 15))
    program.checkpoint(runner, str(tmp_path / "kept"))
    again = load(script(), name="again.py")
    program.restore(again, str(tmp_path / "kept"))
    assert found + list(rates(again, 15, 200)) == whole
