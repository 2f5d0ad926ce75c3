# SPDX-License-Identifier: MIT
"""From the start of a process to the end of its first call, and the memory it has then: one process after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import summary
from .measure import Outcome, Setting
from .worker import Memory, Opened, Unavailable, Worker


def measure_starts(case: str, size: int, paths: Sequence[str], setting: Setting, count: int) -> Outcome:
    """``count`` processes of each path, on the core from their beginning.

    The paths take turns, another one first in each round. A row has the parts of the fastest start, and the largest
    memory: as long as another process maps the same libraries, less of it is private.
    """
    outcome = Outcome()
    found: dict[str, list[tuple[Worker, Opened, Memory]]] = {path: [] for path in paths}
    for number in range(count):
        order = list(found)
        place = number % max(1, len(order))
        for path in order[place:] + order[:place]:
            try:
                reason = setting.refusal(case, path, size)
                if reason is not None:
                    raise Unavailable(reason)
                one = _start(setting, case, path, size)
            except (Unavailable, OSError) as failure:
                outcome.cannot(case, size, path, failure, setting)
                del found[path]
                continue
            if outcome.is_right(case, size, path, one[1]):
                found[path].append(one)
            else:
                del found[path]
    outcome.cold += [_row(case, size, path, some) for path, some in found.items() if some]
    return outcome


def _start(setting: Setting, case: str, path: str, size: int) -> tuple[Worker, Opened, Memory]:
    """A process that has ended, and what it told."""
    worker = Worker(setting.command(case, path), setting.environment, setting.core)
    try:
        return worker, worker.open(size), worker.memory()
    finally:
        worker.close()


def _row(case: str, size: int, path: str, found: Sequence[tuple[Worker, Opened, Memory]]) -> dict[str, Any]:
    parts = [[worker.start_ns / 1e6, opened.load_ns / 1e6, opened.first_call_ns / 1e6] for worker, opened, _ in found]
    start, load, first = min(parts, key=sum)
    memory = [each for *_, each in found]
    return {
        "case": case,
        "size": size,
        "path": path,
        "start_ms": start,
        "load_ms": load,
        "first_call_ms": first,
        "total_ms": summary.summarize([sum(each) for each in parts]),
        "peak_mib": max(each.peak for each in memory) / 2**20,
        "private_mib": max(each.private for each in memory) / 2**20,
        "dirty_mib": max(each.dirty for each in memory) / 2**20,
        "has_python": any(each.has_python for each in memory),
        "description": found[0][0].description,
    }
