# SPDX-License-Identifier: MIT
"""What ``make test-ftorch`` says of programs that are right, wrong, not built or not run."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("run.py")


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("ftorch_run", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("output", "cases"),
    [
        ("....\n Time: 0.2 seconds\n \n OK\n (24 tests)\n", "24 of 24"),
        ("FAILURES!!!\nTests run: 7, Failures: 2, Errors: 0\n", "5 of 7"),
        ("Segmentation fault", ""),
    ],
)
def test_cases_of_a_suite(output, cases, runner):
    assert runner.cases_of(output) == cases


def test_the_table(runner, tmp_path, capsys):
    for target, _ in runner.EXAMPLES.values():
        if target != "training":
            (tmp_path / target).touch(0o755)
    (tmp_path / "unittest_a").touch(0o755)
    results = {test: ("run", "") for _, test in runner.EXAMPLES.values()}
    results |= {"unittest_a": ("fail", "Tests run: 7, Failures: 2, "), "example_resnet_pt2ts": ("fail", "")}
    results |= {"example_resnet_resnet_infer_fortran": ("fail", ""), "example_optim_foptim": ("fail", "")}
    del results["example_multigpu_infer_fortran"]
    assert runner.report(tmp_path, results) == ["10 optimizers", "11 training", "unittest_a"]
    rows = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()]
    assert ["02 simplenet_infer_fortran", "yes", "yes"] in rows
    assert ["03 resnet_infer_fortran", "yes", "not run: pretrained weights of torchvision"] in rows
    assert ["07 multigpu_infer_fortran", "yes", "not run"] in rows
    assert ["10 optimizers", "yes", "no"] in rows and ["11 training", "no", "yes"] in rows
    assert ["unittest_a", "yes", "no", "5 of 7"] in rows
    assert ["examples: 14 of 14 build, 11 are right"] not in rows
    assert ["examples: 13 of 14 build, 11 are right"] in rows
    assert ["pFUnit: 5 of 7 cases pass in 1 suites"] in rows


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, FILE, "--ftorch", tmp_path, "--package", tmp_path, "--work", tmp_path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "is no checkout of FTorch" in done.stderr
