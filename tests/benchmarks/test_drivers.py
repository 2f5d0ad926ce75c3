# SPDX-License-Identifier: MIT
"""The built drivers on the smallest size of each case: results are those of plain Python, times are not looked at."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths.plan import CASES, IN_PYTHON, PATHS, PEERS
from run import HERE

COMPILED = ("package", "pt2")  # models that take minutes to compile
QUICK = {"mlp": ["direct", "script"], "train_step": ["direct", "copy"]}
NO_SUCH_PATH = 77


def test_models_without_python_and_two_scripts(build_dir: Path, tmp_path: Path) -> None:
    write_models(build_dir, tmp_path, "pt")
    run_all(build_dir, tmp_path, {case: QUICK.get(case, ["direct"]) for case in CASES})


@pytest.mark.slow
def test_all_paths(build_dir: Path, tmp_path: Path) -> None:
    write_models(build_dir, tmp_path, "pt,onnx,ftr,ckpt")
    run_all(build_dir, tmp_path, dict.fromkeys(CASES, [path for path in PATHS if path not in IN_PYTHON + COMPILED]))


def write_models(build_dir: Path, folder: Path, formats: str) -> None:
    if not (build_dir / "benchmarks" / "paths" / "bench_driver").is_file():
        pytest.skip("this build has no benchmarks")
    environment = {**os.environ, "BENCH_PACKAGE": str(build_dir / "share" / "ftn_pytorch" / "python")}
    command = [sys.executable, HERE / "models.py", folder, "--smallest", "--formats", formats]
    subprocess.run(command, env=environment, check=True)


def run_all(build_dir: Path, folder: Path, paths: dict[str, list[str]]) -> None:
    """Each case on its paths, further calls among them; a path that is not in this build is none."""
    environment = {**os.environ, "BENCH_SCRIPT": str(HERE / "paths" / "script.py")}
    environment |= {"FTN_PYTORCH_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    wrong, right = {}, 0
    for case, path in ((case, path) for case, some in paths.items() for path in some):
        driver = build_dir / "benchmarks" / "paths" / ("bench_driver" + (f"_{path}" if path in PEERS else ""))
        if not driver.is_file():
            continue
        size = CASES[case].sizes[0]
        requests = [f"open {size}", "check 2"]
        if case == "large_stride":
            requests += [f"open {size} 1", "check 2"]
        command = [driver, case, path, folder, *requests]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        right += done.returncode == 0
        if done.returncode not in (0, NO_SUCH_PATH):
            wrong[f"{case} on {path}"] = done.stdout + done.stderr
    assert not wrong and right
