# SPDX-License-Identifier: MIT
"""The cap of hosts/nuopc in a driver of NUOPC, beside a component with a grid. `make test-hosts` runs it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from comin_build import ROOT

ESMF = os.environ.get("ESMFMKFILE", "")
pytestmark = pytest.mark.skipif(not ESMF, reason="ESMFMKFILE names no esmf.mk: make test-hosts")
EXAMPLE = ROOT / "hosts" / "nuopc" / "example" / "closure.py"


@pytest.fixture(scope="module")
def program():
    folder = Path(os.environ["FTN_PYTORCH_HOSTS_BUILD"])
    build = folder / "nuopc"
    options = [f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}", f"-DESMFMKFILE={ESMF}", "-DCMAKE_BUILD_TYPE=Release"]
    for command in (["-S", ROOT / "tests" / "hosts" / "nuopc", "-B", build, *options], ["--build", build]):
        subprocess.run(["cmake", *command], check=True)
    return build / "test_nuopc"


@pytest.fixture
def run(program, tmp_path):
    def start(ranks, script, first, last, *folder, expect=0):
        environment = {
            **os.environ,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMP_NUM_THREADS": "1",
        }
        command = ["mpirun", "-n", str(ranks), program, script, str(first), str(last), *folder]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert (done.returncode == 0) == (expect == 0), done.stdout + done.stderr
        return done.stdout

    return start


def results(text):
    """What each rank got in the end."""
    return sorted(re.findall(r"(rank \d) after step (\d+) got +(\S+)", text))


@pytest.mark.parametrize("ranks", [1, 2])
def test_it_trains_on_fields_of_another_component(run, ranks):
    text = run(ranks, EXAMPLE, 1, 4)
    assert "2010-03-01T00:30:00 noleap, day 60.0208" in text
    weights = re.findall(r"weight (\d\.\d{16})", text)
    assert len(weights) == 4 * ranks
    assert len(set(weights)) == 4  # the same on both ranks, another one in each step
    # what the other component got in step 4 is what the third step returned
    assert [step for _, step, _ in results(text)] == ["4"] * ranks
    assert all(float(got) > 0 for _, _, got in results(text))


def test_a_restarted_run_is_the_run_at_one_go(run):
    whole = results(run(2, EXAMPLE, 1, 4))
    run(2, EXAMPLE, 1, 2, "checkpoints")
    assert results(run(2, EXAMPLE, 3, 4, "checkpoints")) == whole


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
def test_what_fails_is_in_the_log_of_esmf(run, tmp_path, script, text):
    (tmp_path / "script.py").write_text(script)
    assert "FAILED in" in run(1, "script.py", 1, 2, expect=1)
    assert text in (tmp_path / "PET0.ESMF_LogFile").read_text()
