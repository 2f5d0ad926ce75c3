# SPDX-License-Identifier: MIT
"""The side of a process that measures, for those in Python: see worker.py."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

clock = time.perf_counter_ns


def reply(*words: object) -> None:
    """One answer."""
    print(">>", *words, flush=True)


def started() -> None:
    """The first one."""
    reply("started", 0, "Python", sys.version.split()[0])


def serve(ways: Mapping[str, Callable[[int], object]]) -> None:
    """Answer with the times of ways, each a function that makes as many calls as it is given."""
    started()
    for line in sys.stdin:
        name, samples, calls = line.split()
        times = []
        for _ in range(int(samples)):
            begin = clock()
            ways[name](int(calls))
            times.append((clock() - begin) / int(calls))
        reply("times", *times)


def repeated(function: Callable[[], object]) -> Callable[[int], None]:
    """A way that calls a function."""

    def loop(calls: int) -> None:
        for _ in range(calls):
            function()

    return loop
