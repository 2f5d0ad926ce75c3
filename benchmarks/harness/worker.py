# SPDX-License-Identifier: MIT
"""A process that measures: it answers requests, a line each, and the benchmark asks several of them in turns.

Answers begin with ">>"; whatever else libraries print is skipped.

                       started 0 DESCRIPTION    first of all
NAME SAMPLES CALLS     times T...               nanoseconds of a call; each sample is the mean of CALLS calls
...                    KIND WORDS...            what else a benchmark asks
                       unavailable REASON       in place of any answer
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

# A process that takes longer for one answer is ended.
LIMIT_SECONDS = 600


class Unavailable(Exception):
    """A process cannot run this here; the text says why."""


def numbers(words: Sequence[str], kind: type = float) -> list:
    """The words of an answer. One that has others, as of a process that something else prints into, is a failure."""
    try:
        return [kind(word) for word in words]
    except ValueError as failure:
        raise Unavailable(f"the process answered: {' '.join(words)[:80]}") from failure


class Worker:
    """A started process. ``start_ns`` is from its start until it takes requests."""

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
        self._requests, self._answers = self._process.stdin, self._process.stdout
        try:
            words = self.answer("started")
        except Unavailable:
            self.close()
            raise
        self.start_ns = time.perf_counter_ns() - start
        self.pid = self._process.pid
        self.description = " ".join(words[1:])

    def ask(self, request: str, kind: str) -> list[str]:
        """The words of the answer of this kind; Unavailable if the process has none."""
        try:
            self._requests.write(request + "\n")
            self._requests.flush()
        except OSError as failure:
            raise Unavailable(self._last_words()) from failure
        return self.answer(kind)

    def answer(self, kind: str) -> list[str]:
        """The words of the next answer."""
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

    def times(self, name: str, samples: int, calls: int) -> list[float]:
        """Nanoseconds per call of each sample."""
        return numbers(self.ask(f"{name} {samples} {calls}", "times"))

    def is_running(self) -> bool:
        """Whether the process takes requests."""
        return self._process.poll() is None

    def pin(self, core: int) -> None:
        """All threads to one core."""
        with contextlib.suppress(OSError):  # a process that has ended says so when it is asked
            for task in Path(f"/proc/{self.pid}/task").iterdir():
                with contextlib.suppress(OSError):  # a thread that has ended meanwhile
                    os.sched_setaffinity(int(task.name), {core})

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._requests.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._log.close()

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        said = [line.strip() for line in self._log.read().splitlines() if line.strip()]
        return f"the process ended with code {self._process.returncode}: {said[-1] if said else 'it said nothing'}"


@contextlib.contextmanager
def workers(
    commands: Mapping[str, Iterable[object]], environment: Mapping[str, str], core: int | None = None
) -> Iterator[dict[str, Worker]]:
    """Processes by name that live at the same time, on one core if that is given."""
    with contextlib.ExitStack() as stack:
        started = {}
        for name, command in commands.items():
            started[name] = Worker([str(word) for word in command], environment, core)
            stack.callback(started[name].close)
        yield started
