# SPDX-License-Identifier: MIT
"""What is compared takes turns: functions call by call, and processes line by line.

A process says "ready", and then answers a line with the seconds that it took.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence


def medians(functions: Sequence[Callable[[], object]], calls: int) -> list[float]:
    """Of the microseconds of so many calls of each function."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(calls):
        for function, taken in zip(functions, times):
            begin = time.perf_counter()
            function()
            taken.append(time.perf_counter() - begin)
    return [1e6 * statistics.median(taken) for taken in times]


def start(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """A process that is ready; ``environment``: variables that it gets beside those of this process."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    )
    assert process.stdout
    if process.stdout.readline().strip() != "ready":
        raise RuntimeError(f"{' '.join(command)} did not start")
    return process


def ask(process: subprocess.Popen[str], request: str) -> float:
    """Its answer to a line."""
    assert process.stdin and process.stdout
    print(request, file=process.stdin, flush=True)
    return float(process.stdout.readline())
