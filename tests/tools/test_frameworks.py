# SPDX-License-Identifier: MIT
"""The script of docs/tools.md that computes with JAX, called as a Fortran program would call it."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_script_of_jax(tools: Path, build_dir: Path, tmp_path: Path) -> None:
    section = (ROOT / "docs" / "tools.md").read_text().partition("## JAX, TensorFlow, CuPy\n")[2]
    script, command = (re.search(rf"```{kind}\n(.+?)```", section, re.DOTALL)[1] for kind in ("python", "sh"))
    (tmp_path / "emulator.py").write_text(script)
    variables = {"PYTHONPATH": str(ROOT / "python"), "ftn_pytorch_ROOT": str(build_dir)}
    program, *arguments = command.split()
    assert program == "ftn_pytorch"
    done = subprocess.run(
        [tools / "bin" / "python", "-m", program, *arguments],
        cwd=tmp_path, env=os.environ | variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "result float32 (64, 1)" in done.stdout and "all calls went well" in done.stdout
