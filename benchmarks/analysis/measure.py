# SPDX-License-Identifier: MIT
"""One case: a process for each path, all on one core, taking turns."""

from __future__ import annotations

import functools
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from . import summary
from .plan import FLOOR, IN_PYTHON, LIBRARIES, PATHS, PEERS, SUFFIXES, Effort, turn
from .worker import Opened, Unavailable, Worker

# Calls as slow as this get three rounds at most.
SLOW_NS = 5e8

@functools.cache
def linked_file(program: Path, library: str) -> str | None:
    """The file that a program gets for a library, as the loader says."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    found = re.search(rf"^\s*{re.escape(library)}\S* => (/.*) \(", said, re.MULTILINE)
    return found[1] if found else None


@dataclass(frozen=True)
class Setting:
    """Where things are: the built driver, the folder of the benchmark's sources, that of the models, and the core."""

    driver: Path
    sources: Path
    models: Path
    core: int
    manifest: Mapping[str, Any]
    environment: Mapping[str, str]

    def command(self, case: str, path: str) -> list[str]:
        """Start a worker for a case on a path."""
        if path in IN_PYTHON:
            program = [sys.executable, str(self.sources / "floor.py")]
        elif path in PEERS:
            program = [str(self.driver_of(path))]
        else:
            program = [str(self.driver)]
        return [*program, case, path, "serve", str(self.models)]

    def driver_of(self, path: str) -> Path:
        """The program with a path of a library of others."""
        return Path(f"{self.driver}_{PEERS[path]}")

    def library(self, path: str) -> str | None:
        """The file of that library that the program is linked with; None if there is none."""
        return linked_file(self.driver_of(path), LIBRARIES[PEERS[path]])

    def refusal(self, case: str, path: str, size: int) -> str | None:
        """Why a path cannot run this, known before it is tried."""
        if path in PEERS and not self.driver_of(path).is_file():
            return f"the benchmark was built without {PATHS[path]}"
        if path in PEERS and not self.library(path):
            driver, library = self.driver_of(path).name, LIBRARIES[PEERS[path]]
            return f"{driver} is not linked with {library}, so another library would be measured: build it again"
        problem = self.manifest["problems"].get(f"{case}_{size}")
        if problem is None:
            return "models.py failed before it had written this size"
        reason = self.manifest["refused"].get(case, {}).get(path)
        return reason or self.manifest["missing"].get(f"{problem['stem']}.{SUFFIXES.get(path)}")


@dataclass
class Outcome:
    """What came of one case, as it goes into the JSON file."""

    cold: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    unavailable: list[dict[str, Any]] = field(default_factory=list)
    wrong: list[dict[str, Any]] = field(default_factory=list)

    def extend(self, other: Outcome) -> None:
        """Take over what came of another part."""
        for each in fields(self):
            getattr(self, each.name).extend(getattr(other, each.name))

    def cannot(self, case: str, size: int, path: str, failure: object, setting: Setting) -> None:
        """Note why a path has no numbers."""
        reason = str(failure).replace(f"{setting.models}/", "")
        self.unavailable.append({"case": case, "size": size, "path": path, "reason": reason})

    def is_right(self, case: str, size: int, path: str, answer: Opened) -> bool:
        """Whether the first result is; a wrong one is noted."""
        if answer.error <= answer.tolerance:
            return True
        self.wrong.append(
            {"case": case, "size": size, "path": path, "error": answer.error, "tolerance": answer.tolerance}
        )
        return False


def measure_case(
    case: str, sizes: Sequence[int], paths: Sequence[str], setting: Setting, effort: Effort, say: Callable[[str], None]
) -> Outcome:
    """All sizes of a case on all paths that can run it. A process that fails is a line of the result."""
    outcome = Outcome()
    workers: dict[str, Worker] = {}

    def cannot(path: str, failure: object) -> None:
        """Note why; the next size has a new process if this one has ended."""
        outcome.cannot(case, size, path, failure, setting)
        if path in workers and not workers[path].is_running():
            workers.pop(path).close()

    try:
        for size in sizes:
            opened: dict[str, Opened] = {}
            for path in paths:
                try:
                    reason = setting.refusal(case, path, size)
                    if reason is not None:
                        raise Unavailable(reason)
                    if path not in workers:
                        workers[path] = Worker(setting.command(case, path), setting.environment)
                    answer = workers[path].open(size)
                except (Unavailable, OSError) as failure:
                    cannot(path, failure)
                    continue
                if not outcome.is_right(case, size, path, answer):
                    continue
                opened[path] = answer
            start = time.monotonic()
            results, failures = _measure_size(
                case, size, {path: (workers[path], opened[path]) for path in opened}, setting.core, effort)
            outcome.results += results
            for path, reason in failures.items():
                cannot(path, reason)
            say(f"{case} {size}: {len(results)} paths in {time.monotonic() - start:.0f} s")
    finally:
        for worker in workers.values():
            worker.close()
    return outcome


def _measure_size(
    case: str, size: int, workers: Mapping[str, tuple[Worker, Opened]], core: int, effort: Effort
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Warm up each path, then let them take turns, another one first in each round. Results, and failures by path."""
    turns: dict[str, tuple[int, int]] = {}
    rounds: dict[str, list[list[float]]] = {}
    failures: dict[str, str] = {}
    slowest = 0
    for path, (worker, answer) in workers.items():
        try:
            worker.pin(core)
            times = worker.call(1 if answer.first_call_ns > 2e8 else 5, 1)
            if min(times) < 2e8:
                times = worker.call(3, turn(min(times), effort)[1])
        except Unavailable as failure:
            failures[path] = str(failure)
            continue
        turns[path], rounds[path] = turn(min(times), effort), []
        slowest = max(slowest, min(times))
    for number in range(effort.rounds if slowest < SLOW_NS else min(3, effort.rounds)):
        order = list(rounds)
        for path in order[number % max(1, len(order)):] + order[:number % max(1, len(order))]:
            try:
                rounds[path].append([nanoseconds / 1e3 for nanoseconds in workers[path][0].call(*turns[path])])
            except Unavailable as failure:
                failures[path] = str(failure)
                del rounds[path]
    results = []
    for path, found in rounds.items():
        worker, answer = workers[path]
        entry = {
            "case": case, "size": size, "path": path, "load_ms": answer.load_ns / 1e6,
            "first_call_ms": answer.first_call_ns / 1e6, "error": answer.error, "tolerance": answer.tolerance,
            "calls_per_sample": turns[path][1], "call_us": summary.summarize([value for one in found for value in one]),
            "rounds_us": [statistics.median(values) for values in found],
        }
        try:
            created, released = worker.create(effort.creations)
            entry["creation_us"] = summary.summarize([value / 1e3 for value in created])
            entry["deletion_us"] = summary.summarize([value / 1e3 for value in released])
        except Unavailable as failure:
            failures[path] = f"creation: {failure}"
        if FLOOR in rounds:
            entry["ratio"] = summary.ratio(found, rounds[FLOOR])
            entry["difference_us"] = summary.difference(found, rounds[FLOOR])
        results.append(entry)
    return results, failures
