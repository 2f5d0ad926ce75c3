# SPDX-License-Identifier: MIT
"""One case: a process for each path, all on one core, taking turns; and processes that only start."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from harness import summary, turns
from harness.turns import Effort
from harness.worker import Unavailable, Worker, numbers

from .memory import Memory, memory_of
from .plan import FLOOR, IN_PYTHON, PATHS, PEERS, SUFFIXES


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
        else:
            program = [str(self.driver_of(path) if path in PEERS else self.driver)]
        return [*program, case, path, str(self.models)]

    def driver_of(self, path: str) -> Path:
        """The program with a path of a library of others."""
        return Path(f"{self.driver}_{path}")

    def library(self, path: str) -> str | None:
        """The file of that library that the program is linked with; None if there is none."""
        return linked_file(self.driver_of(path), PEERS[path])

    def refusal(self, case: str, path: str, size: int) -> str | None:
        """Why a path cannot run this, known before it is tried."""
        if path in PEERS and not self.driver_of(path).is_file():
            return f"the benchmark was built without {PATHS[path]}"
        if path in PEERS and not self.library(path):
            driver, library = self.driver_of(path).name, PEERS[path]
            return f"{driver} is not linked with {library}, so another library would be measured: build it again"
        problem = self.manifest["problems"].get(f"{case}_{size}")
        if problem is None:
            return "models.py failed before it had written this size"
        reason = self.manifest["refused"].get(case, {}).get(path)
        return reason or self.manifest["missing"].get(f"{problem['stem']}.{SUFFIXES.get(path)}")

    def worker(self, case: str, path: str, size: int, core: int | None = None) -> Worker:
        """A process for a case on a path. Unavailable if the path cannot run the size."""
        reason = self.refusal(case, path, size)
        if reason is not None:
            raise Unavailable(reason)
        return Worker(self.command(case, path), self.environment, core)


@dataclass(frozen=True)
class Opened:
    """Answer to ``open``: times in nanoseconds, largest difference to plain Python and what is allowed."""

    load_ns: float
    first_call_ns: float
    error: float
    tolerance: float


def open_size(worker: Worker, size: int) -> Opened:
    """Load a size and call it once; Unavailable if the path has no such thing."""
    return Opened(*numbers(worker.ask(f"open {size}", "opened")))


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
        """Note why a path has no times."""
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
        """Note why; the next size has another process if this one has ended."""
        outcome.cannot(case, size, path, failure, setting)
        if path in workers and not workers[path].is_running():
            workers.pop(path).close()

    try:
        for size in sizes:
            opened: dict[str, Opened] = {}
            for path in paths:
                try:
                    if path not in workers or setting.refusal(case, path, size):
                        workers[path] = setting.worker(case, path, size)
                    answer = open_size(workers[path], size)
                except (Unavailable, OSError) as failure:
                    cannot(path, failure)
                    continue
                if outcome.is_right(case, size, path, answer):
                    opened[path] = answer
                    workers[path].pin(setting.core)
            start = time.monotonic()
            times, failures = turns.measure({path: (workers[path], "call") for path in opened}, effort)
            for path, found in times.items():
                row: dict[str, Any] = {"case": case, "size": size, "path": path, **found.row()}
                # From the second size on, this is loading alone, without what the process does once.
                row["load_ms"] = opened[path].load_ns / 1e6
                row |= {"error": opened[path].error, "tolerance": opened[path].tolerance}
                if FLOOR in times:
                    row["ratio"] = summary.ratio(found.rounds, times[FLOOR].rounds)
                    row["difference_us"] = summary.difference(found.rounds, times[FLOOR].rounds)
                outcome.results.append(row)
            for path, reason in failures.items():
                cannot(path, reason)
            say(f"{case} {size}: {len(times)} paths in {time.monotonic() - start:.0f} s")
    finally:
        for worker in workers.values():
            worker.close()
    return outcome


def measure_starts(case: str, size: int, paths: Sequence[str], setting: Setting, count: int) -> Outcome:
    """``count`` processes of each path, one after the other, in turns, on the core from their beginning.

    A row has the parts of the fastest start, and the largest memory: as long as another process maps the same
    libraries, less of it is private.
    """
    outcome = Outcome()

    def start(path: str) -> Start:
        """A process that has ended, and what it told."""
        worker = setting.worker(case, path, size, setting.core)
        try:
            opened = open_size(worker, size)
            if not outcome.is_right(case, size, path, opened):
                raise WrongResult
            return Start(worker.start_ns, opened, memory_of(worker.pid), worker.description)
        finally:
            worker.close()

    found, failures = turns.take_turns({path: functools.partial(start, path) for path in paths}, count)
    for path, reason in failures.items():
        if path not in {row["path"] for row in outcome.wrong}:
            outcome.cannot(case, size, path, reason, setting)
    outcome.cold += [_row(case, size, path, some) for path, some in found.items() if some]
    return outcome


class WrongResult(Unavailable):
    """The first call of a process gave something else than plain Python."""


@dataclass(frozen=True)
class Start:
    """One process: nanoseconds until it took requests, its first call, its memory after that, and what it is."""

    start_ns: int
    opened: Opened
    memory: Memory
    description: str

    @property
    def parts(self) -> tuple[float, float, float]:
        """Milliseconds of the start, of loading, of the first call."""
        return self.start_ns / 1e6, self.opened.load_ns / 1e6, self.opened.first_call_ns / 1e6


def _row(case: str, size: int, path: str, found: Sequence[Start]) -> dict[str, Any]:
    parts = [start.parts for start in found]
    return {
        "case": case,
        "size": size,
        "path": path,
        **dict(zip(("start_ms", "load_ms", "first_call_ms"), min(parts, key=sum))),
        "total_ms": summary.summarize([sum(each) for each in parts]),
        "peak_mib": max(start.memory.peak for start in found) / 2**20,
        "private_mib": max(start.memory.private for start in found) / 2**20,
        "dirty_mib": max(start.memory.dirty for start in found) / 2**20,
        "has_python": any(start.memory.has_python for start in found),
        "description": found[0].description,
    }
