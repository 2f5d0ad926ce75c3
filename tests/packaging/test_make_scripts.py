# SPDX-License-Identifier: MIT
"""The scripts of packaging/ that build with the compilers of this machine, from a copy of the sources."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# With FC, a user's choice, this would not be the compiler of the script.
KEPT = ("PATH", "HOME", "LANG", "CCACHE_DIR")
COMPILERS = {"gnu": r"gfortran", "llvm": r"flang(-new)?-?\d*"}


def compiler_of(name: str) -> str | None:
    names = {file.name for folder in os.environ["PATH"].split(os.pathsep) for file in Path(folder).glob("*f[lo]*[rg]*")}
    return next((found for found in sorted(names) if re.fullmatch(COMPILERS[name], found)), None)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILERS)
def test_script_builds_installs_and_runs_the_first_program(name: str, tmp_path: Path) -> None:
    if not compiler_of(name):
        pytest.skip(f"there is no compiler for make_{name}.sh")
    files = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for file in filter(None, files):
        if (ROOT / file).is_file() and not file.startswith(("tests/", "benchmarks/")):
            (tmp_path / "source" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, tmp_path / "source" / file)
    environment = {variable: os.environ[variable] for variable in KEPT if variable in os.environ}
    done = subprocess.run(
        [tmp_path / "source" / "packaging" / f"make_{name}.sh", tmp_path / "prefix"],
        # Where there is a ccache, the second script compiles no C++ once more.
        env=environment | {"FTN_PYTORCH_PYTHON": sys.executable, "CCACHE_BASEDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert re.search(r"loss +[0-9.]+E-", done.stdout)
    found = re.search(r"The Fortran compiler identification is (\w+)", done.stdout)
    assert found and found[1] == {"gnu": "GNU", "llvm": "LLVMFlang"}[name]
    assert (tmp_path / "prefix" / "lib" / "cmake" / "ftn_pytorch" / "ftn_pytorch-config.cmake").is_file()
