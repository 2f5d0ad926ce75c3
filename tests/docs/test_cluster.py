# SPDX-License-Identifier: MIT
"""docs/cluster.md: its job scripts run, with stand-ins for the commands of a cluster; it lists what is read."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from pages import ROOT, Block, blocks_of

from ftn_pytorch.system import launcher

PAGE = ROOT / "docs" / "cluster.md"
# Each tells how it was called. srun and mpiexec run what they are given, once.
STAND_IN = """#!/bin/bash
echo "$(basename "$0") $*" >> "$CALLS"
while [[ $1 == -* ]]; do [[ $1 == -n ]] && shift; shift; done
case $(basename "$0") in srun|mpiexec) exec "$@" ;; sbcast) cp "$1" "$2" ;; esac
"""
JOB = {
    "SLURM_JOB_ID": "docs_cluster_{pid}",
    "SLURM_JOB_NUM_NODES": "4",
    "SLURM_CPUS_PER_TASK": "1",
    "PBS_O_WORKDIR": "{folder}",
}


def scripts() -> list[Block]:
    return [block for block in blocks_of(PAGE) if block.text.startswith("#!/bin/bash")]


@pytest.mark.parametrize("block", scripts(), ids=lambda block: block.name)
def test_job_scripts_run(block: Block, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("srun", "mpiexec", "sbcast", "module"):
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "bin").mkdir()
    (tmp_path / "venv" / "bin" / "python").touch()
    subprocess.run(["tar", "-cf", "venv.tar", "venv"], cwd=tmp_path, check=True)
    model = tmp_path / "model"
    model.write_text('#!/bin/bash\ntest -e "$FTN_PYTORCH_PYTHON" && echo "$OMP_NUM_THREADS threads"\n')
    model.chmod(0o755)
    variables = {name: value.format(pid=os.getpid(), folder=tmp_path) for name, value in JOB.items()}
    variables |= {"PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")}
    command = ["bash", "-eu", "-c", block.text]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 threads\n"
    calls = (tmp_path / "calls").read_text().splitlines()
    assert sum(call.endswith("./model") for call in calls) == 1
    assert not Path(f"/tmp/{variables['SLURM_JOB_ID']}").exists()


def test_all_variables_of_launchers_are_listed() -> None:
    table = PAGE.read_text().partition("## What the library reads of a launcher")[2].partition("`srun --mpi=pmix`")[0]
    source = Path(launcher.__file__).read_text()
    read = set(re.findall(r'"((?:OMPI|PMIX?|MV2|SLURM|PALS|MPI)_\w+|LOCAL_RANK)"', source))
    listed = set(re.findall(r"`((?:OMPI|PMIX?|MV2|SLURM|PALS|MPI)_\w+|LOCAL_RANK)`", table))
    assert listed == read
