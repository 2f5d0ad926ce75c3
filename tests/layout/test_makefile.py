# SPDX-License-Identifier: MIT
"""What `make test` says at its end: the minutes of each stage, and what was not tested."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PYTEST_LOG = """\
=========================== short test summary info ============================
SKIPPED [2] tests/python/test_kit_replay.py:275: could not import 'h5py': No module named 'h5py'
SKIPPED [133] tests/python/test_device.py:26: no GPU
SKIPPED [1] tests/python/test_halo_gpus.py:12: no GPU
SKIPPED [25] tests/tools/test_site.py: make test-tools runs it
================= 7241 passed, 161 skipped in 498.00s (0:08:18) =================
"""
CTEST_LOG = """\
100% tests passed, 0 tests failed out of 353

The following tests did not run:
\t141 - gpu_openacc (Skipped)
"""


def told(folder: Path, recipe: str) -> str:
    """What a recipe prints that uses the variables of the Makefile."""
    command = ["make", "--no-print-directory", "-f", ROOT / "Makefile", f"--eval=told: ; {recipe}", "told"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_minutes_of_stages(tmp_path: Path) -> None:
    """Names may have a blank; the last stage goes on until now."""
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "stages").write_text("1000 setup\n1030 slow build\n")
    lines = [line.split(maxsplit=1) for line in told(tmp_path, "@$(minutes)").splitlines()]
    assert [name for _, name in lines] == ["setup", "slow build", "all"]
    assert lines[0][0] == "0.5" and float(lines[2][0]) > float(lines[1][0]) > 0.5
    told(tmp_path, "$(call stage,slow ctest)")
    begin, name = (tmp_path / "build" / "stages").read_text().splitlines()[-1].split(maxsplit=1)
    assert name == "slow ctest" and int(begin) > 1030


def test_what_was_skipped_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "pytest.log").write_text(PYTEST_LOG)
    (tmp_path / "ctest.log").write_text(CTEST_LOG)
    line = "not tested here: gpu_openacc; h5py; make test-tools runs it; no GPU\n"
    assert told(tmp_path, "@$(call untested,pytest.log,ctest.log)") == line
