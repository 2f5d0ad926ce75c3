#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts faults into the sources, one at a time, and tells which of them the tests do not notice. Run by hand.

    python tests/mutation/mutate.py [--work FOLDER] [--list] [PART_OF_A_NAME]...

The last commit is cloned into FOLDER and built there, so the own tree stays as it is; a second run with the same FOLDER
builds what has changed. Each fault of the list (``faults_*.py``) is written into the clone, what its tests need is
built, its tests run, and the file is put back. A fault is caught if a test fails or hangs, or if the code does not
compile. A fault whose text is no longer in its file exactly once, or whose tests fail without it, is an error of the
list.

Exit code: 0 if all are caught, 1 if some survive, 2 if the list is wrong.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fault import Fault, Tests
from faults_core import CORE_FAULTS
from faults_other import OTHER_FAULTS

ROOT = Path(__file__).resolve().parents[2]
BUILD = "build/dev"
TEST_LIMIT_S = 300
BUILD_LIMIT_S = 1800


class Clone:
    """A copy of the repository with a build of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            **os.environ,
            "FTN_PYTORCH_PYTHON": sys.executable,
            "FTN_PYTORCH_BUILD_DIR": str(folder / BUILD),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    def prepare(self, targets: set[str]) -> None:
        """The last commit of the repository, configured, with these targets built."""
        if not (self.folder / ".git").exists():
            self._checked("git", "clone", "--quiet", str(ROOT), str(self.folder), cwd=ROOT)
        self._checked("git", "fetch", "--quiet", str(ROOT), "HEAD")
        self._checked("git", "checkout", "--quiet", "--force", "FETCH_HEAD")
        launcher = [f"-DCMAKE_{kind}_COMPILER_LAUNCHER=ccache" for kind in ("C", "CXX")] if _has_ccache() else []
        self._checked("cmake", "--preset", "dev", "-B", BUILD, f"-DPython_EXECUTABLE={sys.executable}", *launcher)
        self._checked("cmake", "--build", BUILD, "--target", *sorted(targets))

    def builds(self, targets: set[str]) -> bool:
        return not targets or self._succeeds(["cmake", "--build", BUILD, "--target", *sorted(targets)], BUILD_LIMIT_S)

    def passes(self, tests: Tests) -> bool:
        return self._succeeds(tests.command(BUILD), TEST_LIMIT_S)

    def _checked(self, *command: str, cwd: Path | None = None) -> None:
        subprocess.run(command, cwd=cwd or self.folder, env=self._environment, check=True, stdout=subprocess.DEVNULL)

    def _succeeds(self, command: list[str], limit: float) -> bool:
        # A session of its own, so that what hangs goes with all that it has started.
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return False


def _has_ccache() -> bool:
    return subprocess.run(["sh", "-c", "command -v ccache"], stdout=subprocess.DEVNULL, check=False).returncode == 0


def misplaced(folder: Path, faults: list[Fault]) -> list[str]:
    """Faults whose text is not in its file exactly once, and those that change nothing."""
    found = []
    for fault in faults:
        path = folder / fault.file
        count = path.read_text().count(fault.text) if path.is_file() else 0
        if count != 1 or fault.text == fault.replacement:
            found.append(f"{fault.name}: {fault.file} has its text {count} times")
    return found


def outcome_of(clone: Clone, fault: Fault) -> str:
    path = clone.folder / fault.file
    source = path.read_text()
    try:
        path.write_text(source.replace(fault.text, fault.replacement))
        if not clone.builds(set(fault.tests.targets)):
            return "caught by the compiler"
        return "SURVIVED" if clone.passes(fault.tests) else "caught"
    finally:
        path.write_text(source)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder for the clone; a temporary one by default")
    parser.add_argument("--list", action="store_true", help="check the list against the sources, and run nothing")
    parser.add_argument("names", nargs="*", help="only faults whose name or file contains one of these")
    chosen = parser.parse_args()
    faults = [
        f
        for f in CORE_FAULTS + OTHER_FAULTS
        if not chosen.names or any(part in f.name or part in f.file for part in chosen.names)
    ]

    wrong = misplaced(ROOT, faults)
    print("\n".join(wrong or [f"{len(faults)} faults, each has its place"]), flush=True)
    if wrong or chosen.list:
        return 2 if wrong else 0
    with tempfile.TemporaryDirectory() as temporary:
        clone = Clone((chosen.work or Path(temporary) / "ftn_pytorch").absolute())
        clone.prepare({"ftn_pytorch_python"}.union(*(fault.tests.targets for fault in faults)))
        # Noticing a fault means nothing where the tests fail without it.
        passing = {tests: clone.passes(tests) for tests in {fault.tests for fault in faults}}
        outcomes = []
        for fault in faults:
            begin = time.monotonic()
            outcomes.append(outcome_of(clone, fault) if passing[fault.tests] else "ERROR: fails without it")
            print(f"{time.monotonic() - begin:6.0f} s  {outcomes[-1]:<24} {fault.file}: {fault.name}", flush=True)
    survived = outcomes.count("SURVIVED")
    print(f"{len(outcomes)} faults, {survived} survived")
    return 2 if any(outcome.startswith("ERROR") for outcome in outcomes) else int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
