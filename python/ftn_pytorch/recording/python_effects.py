# SPDX-License-Identifier: MIT
"""What a call of a function runs in Python that no name shows: code of the user, clocks and files, objects that are
handed to other packages. Seen by the profiling hook of Python, in the one call that is recorded."""

from __future__ import annotations

import builtins
import contextlib
import gc
import os
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any

import torch

from ..values import user_objects
from ..values.kinds import Kind, kind_of, qualities
from .recorder import Recorder
from .tape import is_of_library

_CLOCKS = frozenset(
    getattr(time, f"{name}{unit}")
    for name in (
        "time",
        "monotonic",
        "perf_counter",
        "process_time",
        "thread_time",
        "clock_gettime",
        "localtime",
        "gmtime",
    )
    for unit in ("", "_ns")
    if hasattr(time, f"{name}{unit}")
)
_OTHERS = {
    open: "opens a file",
    os.open: "opens a file",
    builtins.input: "reads from the terminal",
    builtins.eval: "runs a text as code",
    builtins.exec: "runs a text as code",
    builtins.globals: "looks names up by their text (globals)",
    builtins.__import__: "imports a module by a text",
    sys.exc_info: "asks for the exception that is handled",
    sys._getframe: "looks at the frames of its callers",
    sys.getrecursionlimit: "asks for a setting of Python",
    gc.isenabled: "asks for a setting of Python",
    torch.get_num_threads: "asks for the number of threads",
    os.getcwd: "asks for the working directory",
    os.stat: "looks at a file",
    os.listdir: "looks at a folder",
    os.scandir: "looks at a folder",
    os.urandom: "draws random bytes of the system",
}
_OF_THREADS = (threading.get_ident, threading.get_native_id)
_OF_THREADS_IN_PYTHON = tuple(
    function.__code__ for function in (threading.current_thread, threading.active_count, threading.enumerate)
)
_STEP = torch.optim.Optimizer.profile_hook_step(open).__code__  # type: ignore[arg-type]
"""What runs first in the step of an optimizer, whatever its class."""
_SUPPRESS = (contextlib.suppress.__enter__.__code__, contextlib.suppress.__exit__.__code__)
_TODAY = ("now", "utcnow", "today")
# what they read goes into texts for people
_FOR_PEOPLE = ("logging", "warnings", "linecache", "traceback", "tqdm", "matplotlib")
_OWN_THREADS = (*_FOR_PEOPLE, "reprlib", "dataclasses", "threading")
"""What asks for the thread to protect itself."""


class Calls:
    """While it is entered, ``codes`` collects code of the user that runs, ``handed`` objects of own classes that code
    of packages is given, ``stepping`` optimizers that make a step. A clock, a file or a text that is run as code is an
    obstacle of the recorder.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.codes: dict[CodeType, None] = {}
        self.handed: dict[int, Any] = {}
        self.stepping: dict[int, Any] = {}
        self._recorder = recorder
        self._is_own: dict[tuple[str, str], bool] = {}
        self._previous: Any = None

    def __enter__(self) -> Calls:
        self._previous = sys.getprofile()
        if _is_of_cprofile(self._previous):
            self._previous.disable()
        elif self._previous is not None and not callable(self._previous):
            # the hook of a profiler that is written in C could not be put back
            self._recorder.refuse(f"a profiler looks on ({type(self._previous).__name__})")
            return self
        sys.setprofile(self._see)
        return self

    def __exit__(self, *failure: Any) -> None:
        if _is_of_cprofile(self._previous):
            sys.setprofile(None)
            self._previous.enable()
        elif self._previous is None or callable(self._previous):
            sys.setprofile(self._previous)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            if frame.f_code in _SUPPRESS:
                self._recorder.suppressed += 1 if frame.f_code is _SUPPRESS[0] else -1
            if frame.f_code is _STEP:
                optimizer = frame.f_locals["args"][0]
                self.stepping[id(optimizer)] = optimizer
            if frame.f_code in _OF_THREADS_IN_PYTHON and self._concerns(frame.f_back, _OWN_THREADS):
                self._refuse("asks for its thread")
            if self._is_of_user(frame):
                self.codes[frame.f_code] = None
            elif frame.f_back is not None and self._is_of_user(frame.f_back):
                self._note_arguments(frame)
        elif event == "c_call" and argument in _OF_THREADS and self._concerns(frame, _OWN_THREADS):
            self._refuse("asks for its thread")
        elif event == "c_call" and (why := _reason(argument)) and self._concerns(frame):
            self._refuse(why)

    def _refuse(self, why: str) -> None:
        self._recorder.refuse(f"it {why}, which a recording does once: do it outside, and pass the value")

    def _is_of_user(self, frame: FrameType) -> bool:
        name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
        if (name, file) not in self._is_own:
            # what makes named tuples has a module of its own
            is_plain = not is_of_library(file) and not name.startswith("namedtuple_")
            self._is_own[name, file] = is_plain and user_objects.is_own_module(name)
        return self._is_own[name, file]

    def _note_arguments(self, frame: FrameType) -> None:
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        for name in code.co_varnames[:count]:
            value = frame.f_locals.get(name)
            if kind_of(value) is Kind.OBJECT and qualities(type(value)).is_all_own:
                self.handed[id(value)] = value

    def _concerns(self, frame: FrameType | None, others: tuple[str, ...] = _FOR_PEOPLE) -> bool:
        """True where code of the user asks, by itself or through Python's library, and these do not."""
        while frame is not None:
            if self._is_of_user(frame):
                return True
            package = frame.f_globals.get("__name__", "").partition(".")[0]
            if package in others or is_of_library(frame.f_code.co_filename):
                return False
            frame = frame.f_back
        return False


def _reason(function: Any) -> str:
    try:
        if function in _CLOCKS:
            return f"reads a clock ({function.__name__})"
        if function in _OTHERS:
            return _OTHERS[function]
    except TypeError:  # a method of an object that has no hash
        return ""
    is_today = getattr(function, "__name__", "") in _TODAY and isinstance(getattr(function, "__self__", None), type)
    return "reads a clock (datetime)" if is_today else ""


def _is_of_cprofile(hook: Any) -> bool:
    """Whether it is a profiler of Python's own, whose module may be the program: ``python -m cProfile``."""
    return any(each.__name__ == "Profile" and hasattr(each, "runcall") for each in type(hook).__mro__)
