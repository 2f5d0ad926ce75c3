# SPDX-License-Identifier: MIT
"""A fault, and the tests that must notice it."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Tests:
    """What has to be built, and the command that fails if the fault is noticed; ``{build}`` is the build folder."""

    targets: tuple[str, ...]
    words: tuple[str, ...]

    def command(self, build: str) -> list[str]:
        return [word.replace("{build}", build) for word in self.words]


@dataclass(frozen=True)
class Fault:
    """``text``, which is in ``file`` exactly once, becomes ``replacement``."""

    name: str
    file: str
    text: str
    replacement: str
    tests: Tests


def gtest(program: str, cases: str) -> Tests:
    return Tests((program,), (f"{{build}}/bin/{program}", f"--gtest_filter={cases}"))


def ctest(pattern: str, *targets: str) -> Tests:
    return Tests(targets, ("ctest", "--test-dir", "{build}", "--no-tests=error", "-R", pattern))


def pytest(file: str, *targets: str) -> Tests:
    return Tests(targets, (sys.executable, "-m", "pytest", "-q", "-x", f"tests/{file}"))
