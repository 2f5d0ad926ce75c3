# SPDX-License-Identifier: MIT
"""A process that measures one case on one path: bench_driver, or floor.py for plain Python, with the same commands."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# A process that takes longer for one answer is ended.
LIMIT_SECONDS = 600


class Unavailable(Exception):
    """A path cannot run a case here; the text says why."""


@contextlib.contextmanager
def _expected(words: Sequence[str]) -> Iterator[None]:
    """An answer that is none, as of a process that something else prints into, is a failure of its path only."""
    try:
        yield
    except (ValueError, IndexError) as failure:
        raise Unavailable(f"the process answered: {' '.join(words)[:80]}") from failure


@dataclass(frozen=True)
class Opened:
    """Answer to ``open``: times in nanoseconds, largest difference to plain Python and what is allowed."""

    load_ns: int
    first_call_ns: int
    error: float
    tolerance: float


@dataclass(frozen=True)
class Memory:
    """Bytes of a process.

    peak: largest resident memory so far; private: pages that no other process has, which are files as well if it is the
    only one that maps them; dirty: those among them that it has written; has_python: whether Python is in it
    """

    peak: int
    private: int
    dirty: int
    has_python: bool


def memory_of(process: Path) -> Memory:
    """Of a folder of /proc. OSError or KeyError if it does not tell."""
    status = _kilobytes(process / "status")
    pages = _kilobytes(process / "smaps_rollup")
    mapped = {line.rpartition("/")[2] for line in (process / "maps").read_text().splitlines() if "/" in line}
    return Memory(
        peak=status["VmHWM"] * 1024,
        private=(pages["Private_Clean"] + pages["Private_Dirty"]) * 1024,
        dirty=pages["Private_Dirty"] * 1024,
        has_python=any(name.startswith(("libpython", "python")) for name in mapped),
    )


def _kilobytes(file: Path) -> dict[str, int]:
    """The lines "NAME: NUMBER kB" of a file."""
    words = [line.split() for line in file.read_text().splitlines()]
    return {line[0].rstrip(":"): int(line[1]) for line in words if len(line) == 3 and line[2] == "kB"}


class Worker:
    """A started process. ``start_ns`` is from its start until it takes commands."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], core: int | None = None) -> None:
        """core: to run on from the beginning; by default any, until pin."""
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by close)
        start = time.perf_counter_ns()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
            env={**os.environ, **environment},
            preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._commands, self._answers = self._process.stdin, self._process.stdout
        try:
            words = self._answer("started")
        except Unavailable:
            self.close()
            raise
        self.start_ns = time.perf_counter_ns() - start
        self.description = " ".join(words[1:])

    def open(self, size: int) -> Opened:
        """Load a size and call it once; Unavailable if the path has no such thing."""
        words = self._ask(f"open {size}", "opened")
        with _expected(words):
            return Opened(int(words[0]), int(words[1]), float(words[2]), float(words[3]))

    def call(self, samples: int, calls: int) -> list[int]:
        """Nanoseconds per call of each sample."""
        words = self._ask(f"call {samples} {calls}", "times")
        with _expected(words):
            return [int(word) for word in words]

    def create(self, samples: int) -> tuple[list[int], list[int]]:
        """Nanoseconds of loading the model once more, and of releasing it; Unavailable if the path cannot."""
        words = self._ask(f"create {samples}", "times")
        released = self._answer("times")
        with _expected(words + released):
            return [int(word) for word in words], [int(word) for word in released]

    def is_running(self) -> bool:
        """Whether the process takes commands."""
        return self._process.poll() is None

    def pin(self, core: int) -> None:
        """All threads to one core."""
        with contextlib.suppress(OSError):  # a process that has ended says so when it is asked
            for task in Path(f"/proc/{self._process.pid}/task").iterdir():
                with contextlib.suppress(OSError):  # a thread that has ended meanwhile
                    os.sched_setaffinity(int(task.name), {core})

    def memory(self) -> Memory:
        """Of the process as it is now; Unavailable if it has ended, or if the system does not tell."""
        try:
            return memory_of(Path(f"/proc/{self._process.pid}"))
        except (OSError, KeyError) as failure:
            raise Unavailable(f"its memory is not known: {failure}") from failure

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._commands.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._log.close()

    def _ask(self, command: str, kind: str) -> list[str]:
        try:
            self._commands.write(command + "\n")
            self._commands.flush()
        except OSError as failure:
            raise Unavailable(self._last_words()) from failure
        return self._answer(kind)

    def _answer(self, kind: str) -> list[str]:
        """The words of the next line that is an answer; whatever else the libraries print is skipped."""
        limit = threading.Timer(LIMIT_SECONDS, self._process.kill)
        limit.start()
        try:
            for line in self._answers:
                if line.startswith(">> "):
                    found, *words = line.split()[1:]
                    if found != kind:
                        raise Unavailable(" ".join(words))
                    return words
        finally:
            limit.cancel()
        raise Unavailable(self._last_words())

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        said = [line.strip() for line in self._log.read().splitlines() if line.strip()]
        return f"the process ended with code {self._process.returncode}: {said[-1] if said else 'it said nothing'}"
