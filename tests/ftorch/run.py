#!/usr/bin/env python
# SPDX-License-Identifier: MIT
"""Build and run FTorch's own examples and pFUnit suite against this library, unchanged, and print a table.

    run.py --ftorch CHECKOUT --package PREFIX/share/ftn_pytorch/ftorch --work FOLDER [--pfunit CHECKOUT_OR_PREFIX]

Exit code 1 if a program does not build, or runs and is wrong. Programs that need what this machine lacks (pretrained
weights, a second GPU) are not run, and the table says so.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from mpi_environment import MPI_ENVIRONMENT  # noqa: E402

# Programs of the examples: the target, and the test that runs it
EXAMPLES = {
    "01 tensor_manipulation": ("tensor_manipulation", "example_tensor_manipulation"),
    "02 simplenet_infer_fortran": ("simplenet_infer_fortran", "example_simplenet_simplenet_infer_fortran"),
    "03 resnet_infer_fortran": ("resnet_infer_fortran", "example_resnet_resnet_infer_fortran"),
    "04 batching_demo_fortran": ("batching_demo_fortran", "example_batching_demo_fortran"),
    "05 multiionet_infer_fortran": ("multiionet_infer_fortran", "example_multiio_multiionet_infer_fortran"),
    "06 simplenet_infer_fortran_bad": ("simplenet_infer_fortran_bad", "example_looping_bad_fortran"),
    "06 simplenet_infer_fortran_good": ("simplenet_infer_fortran_good", "example_looping_good_fortran"),
    "07 multigpu_infer_fortran": ("multigpu_infer_fortran", "example_multigpu_infer_fortran"),
    "08 mpi_infer_fortran": ("mpi_infer_fortran", "example_mpi_mpi_infer_fortran"),
    "09 tensor_manipulation_backward": (
        "tensor_manipulation_backward",
        "example_autograd_tensor_manipulation_backward_fortran",
    ),
    "09 autograd": ("autograd", "example_autograd_autograd_fortran"),
    "09 simplenet_backward": ("simplenet_backward", "example_autograd_simplenet_backward_fortran"),
    "10 optimizers": ("optimizers", "example_optim_foptim"),
    "11 training": ("training", "example_training_fortran"),
}
# Steps of examples that need what tests cannot count on, and what follows from them.
NEEDS = {"example_resnet_resnet_infer_fortran": ("example_resnet_pt2ts", "pretrained weights of torchvision")}


def run(command: Sequence[object], cwd: Path, log: Path, env: dict[str, str], check: bool = True) -> int:
    """Run a command whose output goes into a file."""
    with log.open("a") as out:
        print("$", *command, file=out, flush=True)
        done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, stdout=out, stderr=subprocess.STDOUT)
    if check and done.returncode:
        sys.exit(f"{command[0]} failed: see {log}\n" + "\n".join(log.read_text().splitlines()[-20:]))
    return done.returncode


def environment(ftorch: Path, work: Path) -> dict[str, str]:
    """FTorch's tests want an active environment of Python, and its tool pt2ts, which pip would install."""
    tool = work / "bin" / "pt2ts"
    tool.parent.mkdir(parents=True, exist_ok=True)
    call = "from ftorch_utils.pt2ts import main_cli; main_cli()"
    tool.write_text(f'#!/bin/sh\nPYTHONPATH="{ftorch}" exec "{sys.executable}" -c "{call}" "$@"\n')
    tool.chmod(0o755)
    path = os.pathsep.join([str(tool.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {
        "PATH": path,
        "VIRTUAL_ENV": sys.prefix,
        "FTN_PYTORCH_PYTHON": sys.executable,
        **MPI_ENVIRONMENT,
    }


def installed_pfunit(given: Path, work: Path, log: Path, env: dict[str, str]) -> Path:
    """A prefix with pFUnit: the folder itself, or what its sources install."""
    if not (given / "CMakeLists.txt").is_file():
        return given
    prefix, build = work / "pfunit", work / "pfunit-build"
    if not any(prefix.glob("PFUNIT*")):
        options = [f"-D{name}=YES" for name in ("SKIP_MPI", "SKIP_OPENMP", "SKIP_FHAMCREST")]
        command = ["cmake", "-S", given, "-B", build, "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_INSTALL_PREFIX={prefix}"]
        run([*command, *options], work, log, env)
        run(
            ["cmake", "--build", build, "--parallel", os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2")], work, log, env
        )
        run(["cmake", "--install", build], work, log, env)
    return prefix


def results_of(junit: Path) -> dict[str, tuple[str, str]]:
    """Tests that ctest ran: "run", "fail" or "notrun", and what they wrote."""
    found = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        found[case.attrib["name"]] = (case.attrib["status"], case.findtext("system-out") or "")
    return found


def cases_of(output: str) -> str:
    """What pFUnit says about a suite."""
    passed, failed = re.search(r"\((\d+) tests?\)", output), re.search(r"Tests run: (\d+), Failures: (\d+)", output)
    return (
        f"{passed[1]} of {passed[1]}"
        if passed
        else f"{int(failed[1]) - int(failed[2])} of {failed[1]}"
        if failed
        else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("ftorch", "package", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--pfunit", type=Path)
    parser.add_argument("--build-type", default="Debug", help="as FTorch's examples have it")
    given = parser.parse_args()
    ftorch, package, work = (path.resolve() for path in (given.ftorch, given.package, given.work))
    if not (ftorch / "src" / "ftorch.f90").is_file():
        sys.exit(f"{ftorch} is no checkout of FTorch")
    work.mkdir(parents=True, exist_ok=True)
    log = work / "log.txt"
    log.unlink(missing_ok=True)
    env = environment(ftorch, work)
    prefixes = [package]
    if given.pfunit:
        prefixes.append(installed_pfunit(given.pfunit.resolve(), work, log, env))
    build = work / "build"
    shutil.rmtree(build / "unit", ignore_errors=True)
    options = [f"-DFTORCH_SOURCE={ftorch}", f"-DCMAKE_BUILD_TYPE={given.build_type}"]
    options += [f"-DCMAKE_PREFIX_PATH={';'.join(map(str, prefixes))}", f"-DPython_EXECUTABLE={sys.executable}"]
    run(["cmake", "-S", Path(__file__).parent, "-B", build, "-G", "Ninja", *options], work, log, env)
    run(["cmake", "--build", build, "--", "-k", "0"], work, log, env, check=False)
    results: dict[str, tuple[str, str]] = {}
    for choice in ("-E", "-R"):  # example 6 takes the model of another one
        junit = work / f"results{choice}.xml"
        run(["ctest", "--test-dir", build, choice, "^example_looping_", "--parallel", "1", "--timeout", "900",
             "--test-output-size-passed", "200000", "--output-junit", junit], work, log, env, check=False)  # fmt: skip
        results |= results_of(junit)
    sys.exit(1 if report(build, results) else 0)


def report(build: Path, results: dict[str, tuple[str, str]]) -> list[str]:
    """Print the table; the programs that are wrong."""
    suites = {name: (name, name) for name in results if name.startswith("unittest_")}
    programs = {path.name for path in build.rglob("*") if path.is_file() and os.access(path, os.X_OK)}
    wrong, cases, rows = [], [0, 0], [("program", "builds", "right", "cases")]
    for title, (target, test) in (EXAMPLES | suites).items():
        status, output = results.get(test, ("absent", ""))
        builds = target in programs
        step, lack = NEEDS.get(test, ("", ""))
        lacks = results.get(step, ("run", ""))[0] == "fail" or status in ("absent", "notrun", "disabled")
        right = "yes" if status == "run" else f"not run{': ' + lack if lack else ''}" if lacks and builds else "no"
        counted = cases_of(output) if test in suites else ""
        if counted:
            cases = [sum(pair) for pair in zip(cases, map(int, counted.split(" of ")))]
        if not builds or right == "no":
            wrong.append(title)
        rows.append((title, "yes" if builds else "no", right, counted))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    examples = [row for row in rows[1:] if row[0] in EXAMPLES]
    print(f"\nexamples: {sum(row[1] == 'yes' for row in examples)} of {len(examples)} build, "
          f"{sum(row[2] == 'yes' for row in examples)} are right")  # fmt: skip
    print(f"pFUnit: {cases[0]} of {cases[1]} cases pass in {len(suites)} suites" if suites else "pFUnit: not given")
    if wrong:
        print("wrong: " + ", ".join(wrong))
    return wrong


if __name__ == "__main__":
    main()
