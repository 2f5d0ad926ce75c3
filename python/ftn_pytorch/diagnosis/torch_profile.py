# SPDX-License-Identifier: MIT
"""FTN_PYTORCH_TORCH_PROFILE: torch.profiler around some calls of the program, each named in the trace.

Files in the folder: ``PROGRAM.rank0.TIME.pt.trace.json`` in Chrome's format, for TensorBoard and Perfetto, and
``PROGRAM.rank0.txt``, the operators with their shapes, times and memory.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import summary
from ..ranks import own_rank
from ..system import launcher, log, process

VARIABLE = "FTN_PYTORCH_TORCH_PROFILE"
CALLS_VARIABLE = "FTN_PYTORCH_TORCH_PROFILE_CALLS"
DEFAULT_CALLS = "11-20"
_ROWS = 40


def _ends_profile(method: Callable) -> Callable:
    """A method whose failure ends the profile, with a warning, and never the call that is profiled."""

    @functools.wraps(method)
    def guarded(self: Profile, *args: Any) -> None:
        if self.ended:
            return
        try:
            method(self, *args)
        except Exception as failure:
            self.ended = True
            process.warn(f"{VARIABLE}: nothing more is profiled: {summary(failure)}")

    return guarded


class Profile:
    """Calls ``first`` to ``last``, counted from 1, of the thread that makes the first one.

    torch profiles one thread and those that work for it. A call inside of a call belongs to the outer one.
    """

    def __init__(self, folder: Path, first: int, last: int) -> None:
        self.ended = False
        self._folder, self._first, self._last = folder, first, last
        self._thread = threading.get_ident()
        self._calls = 0
        self._open: list[Any] = []  # ranges, None for a call that is not profiled
        self._profiler: Any = None
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"{folder} cannot be written into")
        atexit.register(self._at_exit)

    @_ends_profile
    def push(self, name: str) -> None:
        """A call begins."""
        if threading.get_ident() != self._thread:
            return
        import torch

        if not self._open:
            self._calls += 1
            warmup = min(1, self._first - 1)  # the first profiled call pays for the start of the profiler
            if self._calls == self._first - warmup:
                self._profiler = torch.profiler.profile(
                    schedule=torch.profiler.schedule(
                        wait=0, warmup=warmup, active=self._last - self._first + 1, repeat=1
                    ),
                    on_trace_ready=self._write,
                    record_shapes=True,
                    profile_memory=True,
                )
                self._profiler.start()
        opened = None if self._profiler is None else torch.profiler.record_function(name)
        if opened is not None:
            opened.__enter__()
        self._open.append(opened)

    @_ends_profile
    def pop(self) -> None:
        """The call that began last has ended, with or without an exception."""
        if threading.get_ident() != self._thread or not self._open:
            return
        opened = self._open.pop()
        if opened is not None:
            opened.__exit__(None, None, None)
        if not self._open and self._profiler is not None:
            self._profiler.step()
            if self._calls == self._last:
                self.ended = True
                self._profiler.stop()

    def _write(self, profiler: Any) -> None:
        import torch

        rank = launcher.launched_rank_and_size()[0]
        program = sys.executable if process.host() is None else "/proc/self/exe"
        worker = f"{Path(program).resolve().stem}.rank{rank}"
        torch.profiler.tensorboard_trace_handler(str(self._folder), worker)(profiler)
        averages = profiler.key_averages(group_by_input_shape=True)
        table = averages.table(sort_by="self_cpu_time_total", row_limit=_ROWS, max_name_column_width=45)
        calls = f"calls {self._first} to {self._calls} of this program"
        (self._folder / f"{worker}.txt").write_text(f"{calls}\n{table}\n")
        log.info(f"{VARIABLE}: {calls} are in {self._folder}, as {worker}.*.pt.trace.json")

    @_ends_profile
    def _at_exit(self) -> None:
        if self._calls >= self._first:
            self._profiler.stop()
        elif self._calls:
            process.warn(
                f"{VARIABLE}: nothing is in {self._folder}, since the program has made {self._calls} calls. "
                f"{CALLS_VARIABLE}={self._first}-{self._last} says which ones are profiled."
            )


def _calls(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d*)(?:-([1-9]\d*))?", text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if last < first:
        raise ValueError(f"{CALLS_VARIABLE}={text}: write the first and the last call, such as {DEFAULT_CALLS}")
    return first, last


@functools.lru_cache(maxsize=1)
def _profile(folder: str) -> Profile | None:
    try:
        return Profile(
            Path(own_rank.with_rank(folder)).absolute(), *_calls(os.environ.get(CALLS_VARIABLE, DEFAULT_CALLS))
        )
    except (OSError, ValueError) as failure:
        process.warn(f"{VARIABLE}: nothing is profiled: {summary(failure)}")
        return None


def ranges(name: str) -> tuple[Callable[[], None], Callable[[], None]] | None:
    """Functions for the begin and the end of a call, or None: not wanted, not possible, or torch is not imported."""
    folder = os.environ.get(VARIABLE, "")
    if folder in ("", "0") or "torch" not in sys.modules:
        return None
    profile = _profile(folder)
    return None if profile is None else (functools.partial(profile.push, name), profile.pop)
