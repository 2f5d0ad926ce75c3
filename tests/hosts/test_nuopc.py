# SPDX-License-Identifier: MIT
"""The cap of hosts/nuopc in a driver of NUOPC, beside a component with a grid. `make test-hosts` runs it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hosts_run import ROOT, run, start

ESMF = os.environ.get("ESMFMKFILE", "")
pytestmark = pytest.mark.skipif(not ESMF, reason="ESMFMKFILE names no esmf.mk: make test-hosts")
EXAMPLE = ROOT / "hosts" / "nuopc" / "example" / "closure.py"


@pytest.fixture(scope="module")
def program():
    folder = Path(os.environ["FTN_PYTORCH_HOSTS_BUILD"])
    build = folder / "nuopc"
    options = [f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}", f"-DESMFMKFILE={ESMF}", "-DCMAKE_BUILD_TYPE=Release"]
    run("cmake", "-S", ROOT / "tests" / "hosts" / "nuopc", "-B", build, *options)
    run("cmake", "--build", build)
    return build / "test_nuopc"


@pytest.fixture
def coupled(program, tmp_path):
    """Runs the steps first to last, and gives what it printed."""

    def steps(ranks, script, first, last, *folder, expect=0):
        return start(ranks, tmp_path, program, script, first, last, *folder, expect=expect)[0]

    return steps


def results(text):
    """What each rank got in the end."""
    return sorted(re.findall(r"(rank \d) after step (\d+) got +(\S+)", text))


@pytest.mark.parametrize("ranks", [1, 2])
def test_it_trains_on_fields_of_another_component(coupled, ranks):
    text = coupled(ranks, EXAMPLE, 1, 4)
    assert "2010-03-01T00:30:00 noleap, day 60.0208" in text
    weights = re.findall(r"weight (\d\.\d{16})", text)
    assert len(weights) == 4 * ranks
    assert len(set(weights)) == 4  # the same on both ranks, another one in each step
    # what the other component got in step 4 is what the third step returned
    assert [step for _, step, _ in results(text)] == ["4"] * ranks
    assert all(float(got) > 0 for _, _, got in results(text))


def test_a_restarted_run_is_the_run_at_one_go(coupled):
    whole = results(coupled(2, EXAMPLE, 1, 4))
    coupled(2, EXAMPLE, 1, 2, "checkpoints")
    assert results(coupled(2, EXAMPLE, 3, 4, "checkpoints")) == whole


@pytest.mark.parametrize("interval", ["hourly", "0", "-3600"])
def test_an_interval_that_is_none_is_refused(coupled, tmp_path, interval):
    assert "FAILED in" in coupled(1, EXAMPLE, 1, 2, "checkpoints", interval, expect=1)
    assert f"RestartInterval={interval}: it is seconds" in (tmp_path / "PET0.ESMF_LogFile").read_text()


@pytest.mark.parametrize(
    "script, text",
    [
        ("def ftn_pytorch_nuopc():\n    return ['imports x']\n", 'line "imports x": it is import or export'),
        ("x = 1\n", "ftn_pytorch_nuopc"),
        (
            "def ftn_pytorch_nuopc():\n    return ['import x quantity_x', 'export y quantity_y']\n"
            "def ftn_pytorch_advance(x):\n    return {'y': 1 / 0}\n",
            "ZeroDivisionError",
        ),
    ],
)
def test_what_fails_is_in_the_log_of_esmf(coupled, tmp_path, script, text):
    (tmp_path / "script.py").write_text(script)
    assert "FAILED in" in coupled(1, "script.py", 1, 2, expect=1)
    assert text in (tmp_path / "PET0.ESMF_LogFile").read_text()
