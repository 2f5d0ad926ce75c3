# SPDX-License-Identifier: MIT
"""What a call of a function runs in Python that no name shows: code of the user, and C functions such as clocks, which
need not give the same in the next call. Seen by the profiling hook of Python, in the one call that is recorded."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import os
import re
import sys
import threading
from types import CoroutineType, FrameType, FunctionType, GeneratorType, MappingProxyType, ModuleType
from typing import Any

import torch

from ..values.held import CACHED
from ..values.kinds import Kind, kind_of
from .bindings import Watch
from .operations import FOR_PEOPLE, OWN, RECORDING, callers, is_of_library, is_of_package, is_of_user
from .optimizer_numbers import Trials
from .recorder import Recorder
from .schedules import STEPS
from .switches import switches_in

_PURE = frozenset(
    ("builtins", "math", "cmath", "operator", "itertools", "functools", "collections", "abc", "struct", "json", "sre")
    + ("bisect", "heapq", "statistics", "codecs", "string", "datetime", "weakref", "typing", "thread")
    + ("unicodedata", "binascii", "contextvars", "csv", "zlib", "pickle", "random", "warnings", "torch", "numpy")
)
"""Modules, or their parts in C, whose C functions give the same for the same, but for those of ``_OTHERS``."""
_OF_NAMES = frozenset(("intern", "audit", "fspath", "fsencode", "fsdecode"))
"""Of ``sys`` and ``os``: what these make of a text."""
_OF_CLASSES = frozenset(
    ("fromkeys", "from_bytes", "fromhex", "maketrans", "fromisoformat", "fromordinal", "combine", "strptime", "mro")
)
"""Methods of classes that give the same for the same; and those with two underscores, but for ``__subclasses__``."""
_FRESH = (GeneratorType, CoroutineType, MappingProxyType, memoryview, re.Match, torch.autograd.graph.Node)
"""What a function makes for itself, or is refused where a name leads to it."""
_FILES = (open, os.open)
_ONCE = "which a recording does once: do it outside, and pass the value"
_OTHERS = {
    "input": "reads from the terminal",
    "open": "opens a file",
    "eval": "runs a text as code",
    "exec": "runs a text as code",
    "globals": "looks names up by their text (globals)",
    "import": "imports a module by a text",
    "fromfile": "reads a file",
    "get_num_threads": "asks for the number of threads",
    "get_extobj_dict": "asks for a setting of NumPy",
    "get_ident": "asks for its thread",
    "get_native_id": "asks for its thread",
}
"""Of modules that are pure otherwise, and ``open`` of all; by names without the underscores around them."""
_OF_THREADS = (threading.get_ident, threading.get_native_id)
_OF_THREADS_IN_PYTHON = tuple(
    function.__code__ for function in (threading.current_thread, threading.active_count, threading.enumerate)
)
_STEP = torch.optim.Optimizer.profile_hook_step(open).__code__  # type: ignore[arg-type]
"""What runs first in the step of an optimizer, whatever its class."""
_MODE = torch.nn.Module.train.__code__
"""What gives a network its mode: ``eval`` calls it, too."""
_SUPPRESS = (contextlib.suppress.__enter__.__code__, contextlib.suppress.__exit__.__code__)
_IMPORT = importlib.import_module.__code__
_OF_ENVIRONMENT = frozenset(each.__code__ for each in vars(type(os.environ)).values() if isinstance(each, FunctionType))
_KEPT = ("get_state", "set_state")
"""What torch asks of a generator to draw the same numbers again, other than where code of a user has torch do that."""
_OWN_THREADS = (*FOR_PEOPLE, "reprlib", "dataclasses", "threading")
"""What asks for the thread to protect itself."""


class Calls:
    """While it is entered, ``watch`` is told which code of the user runs, and ``trials`` which optimizers make a step.
    A C function that need not give the same for the same is an obstacle of the recorder.
    """

    def __init__(self, recorder: Recorder, watch: Watch, trials: Trials) -> None:
        self.scheduled: list[tuple[Any, Any, int]] = []
        """Schedulers that code of the user steps, what it gives them, and how many operations there were."""
        self.modes: list[Any] = []
        """Networks that are given a mode, maybe the one that they had."""
        self.asks_switches = False
        self.asks_attributes = False
        """A class of torch tells by attributes whether a tensor is one of its instances, and code has asked."""
        self._recorder, self._watch, self._trials = recorder, watch, trials
        self._previous: Any = None
        self._state: Any = None
        """Of a generator that is being set."""
        self._loading = 0
        """How many functions run that import modules: what code of these does, it does once in any case."""
        self._thread = threading.get_ident()

    def __enter__(self) -> Calls:
        sys.meta_path.append(self)
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
        sys.meta_path.remove(self)
        self._trials.end()
        for why in filter(None, map(_reason, self._watch.handed)):
            self._recorder.obstacle = self._recorder.obstacle or f"it {why}, {_ONCE}"
        if _is_of_cprofile(self._previous):
            sys.setprofile(None)
            self._previous.enable()
        elif self._previous is None or callable(self._previous):
            sys.setprofile(self._previous)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """As the last of ``sys.meta_path`` it is asked for what none of the others has found."""
        if threading.get_ident() != self._thread:
            return
        # a module that is imported meanwhile looks once
        is_once = any(each.f_code.co_name == "<module>" for each in callers(sys._getframe(1), RECORDING))
        if not is_once and self._concerns(sys._getframe(1)):
            self._recorder.refuse(
                f"it looks for a module that is not there ({name}), and may be later: import it outside"
            )

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            self._loading += {"call": 1, "return": -1}.get(event, 0)
        if self._loading:
            return
        if event == "call":
            if frame.f_code in _SUPPRESS:
                self._recorder.suppressed += 1 if frame.f_code is _SUPPRESS[0] else -1
            caller = frame.f_back or frame
            if frame.f_code in STEPS and (is_of_user(caller) or is_of_package(caller)):
                given = (frame.f_locals["self"], frame.f_locals.get("epoch", frame.f_locals.get("metrics")))
                self.scheduled.append((*given, len(self._recorder.operations)))
            if frame.f_code is _MODE:
                self.modes.append(frame.f_locals["self"])
            if frame.f_code is _STEP:
                args, named = frame.f_locals["args"], frame.f_locals["kwargs"]
                if any(args[0] is each for each in self._watch.optimizers):
                    self._trials.begin(args[0], args, named)
                else:
                    kind = type(args[0]).__name__
                    self._recorder.refuse(f"no name that it uses leads to its {kind}: give it as optimizer=")
            if frame.f_code in _OF_THREADS_IN_PYTHON and self._concerns(frame.f_back, _OWN_THREADS):
                self._refuse("asks for its thread")
            if frame.f_code is _IMPORT:
                self._watch.looked_up(sys.modules, frame.f_locals["name"])
            if frame.f_code in _OF_ENVIRONMENT and self._concerns(frame.f_back):
                self._watch.looked_up(vars(os), "environ")
            is_installed = is_of_package(frame)
            is_followed = is_installed or is_of_user(frame)
            if is_followed and not self._watch.ran(frame.f_code, frame.f_globals, is_installed):
                place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_code.co_firstlineno}"
                self._recorder.refuse(f"it runs {frame.f_code.co_name} ({place}), to which none of its names leads")
            name = frame.f_globals.get("__name__", "")
            if (name == "torch" or name.startswith("torch.backends")) and is_of_user(caller):
                self.asks_switches = True
            if frame.f_code.co_name == "__instancecheck__" and name.startswith("torch"):
                self.asks_attributes |= is_of_user(caller) or is_of_package(caller)
            if not is_followed and not frame.f_code.co_filename.startswith(OWN):
                for space, switch in switches_in(frame.f_code, name):
                    self._watch.switched(space, switch)
        if event == "return" and frame.f_code in STEPS and self.scheduled:
            scheduler, _, begin = self.scheduled[-1]
            if frame.f_locals["self"] is scheduler and any(each.writes for each in self._recorder.operations[begin:]):
                # each run steps it in Python, and would make these operators besides
                kind = type(scheduler).__name__
                self._recorder.refuse(f"the step of its {kind} writes into a tensor, such as its rate: step it outside")
        if event == "return" and frame.f_code is _STEP:
            self._trials.end(frame.f_locals["args"][0])
        is_set = event in ("c_call", "c_return") and argument.__name__ == "set_state"
        if is_set and isinstance(argument.__self__, torch.Generator):
            self._see_generator(argument.__self__, event == "c_return")
        if event == "c_call" and is_of_user(frame):
            self._recorder.called = argument
            self.asks_switches |= "get_" in getattr(argument, "__name__", "")
        if event == "c_call" and (why := _reason(argument)):
            is_of_generator = isinstance(getattr(argument, "__self__", None), torch.Generator)
            # a function of torch would ask for the seed for the code of a user
            is_kept = getattr(argument, "__name__", "") in _KEPT and not is_of_user(frame.f_back or frame)
            is_deep = argument in _FILES or (is_of_generator and not is_kept)
            if self._concerns(frame, _OWN_THREADS if argument in _OF_THREADS else FOR_PEOPLE, is_deep):
                self._refuse(why)

    def _see_generator(self, generator: torch.Generator, has_been: bool) -> None:
        """A run draws one number after the other. torch may set a generator to the state that it has."""
        with self._recorder.paused():
            before, self._state = self._state, generator.get_state()
            if has_been and not torch.equal(before, self._state):
                self._recorder.refuse(
                    "torch sets random numbers back, as a checkpoint of activations (torch.utils.checkpoint) and "
                    "fork_rng do: draw none inside of these"
                )

    def _refuse(self, why: str) -> None:
        self._recorder.refuse(f"it {why}, {_ONCE}")

    def _concerns(self, frame: FrameType | None, others: tuple[str, ...] = FOR_PEOPLE, is_deep: bool = False) -> bool:
        """True where code of the user asks, by itself or through Python's library, and these do not. ``is_deep``: also
        through torch and this package."""
        for each in callers(frame):
            if is_of_user(each) or is_of_package(each):
                return True
            package = each.f_globals.get("__name__", "").partition(".")[0]
            if package in others or (is_of_library(each.f_code.co_filename) and not is_deep):
                return False
        return False


def _reason(function: Any) -> str:
    """Why a function of C cannot be left out in a later call; empty where it gives the same for the same."""
    name, of = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if type(of) is CACHED:
        return f"asks a cache what it keeps, or clears it ({name})"
    if isinstance(of, type):
        is_known = name in _OF_CLASSES or (name.startswith("__") and name != "__subclasses__")
        is_clock = issubclass(of, datetime.date)
        return "" if is_known else "reads a clock (datetime)" if is_clock else f"calls {of.__name__}.{name}"
    if of is None or isinstance(of, ModuleType):
        module = str(getattr(function, "__module__", None) or getattr(of, "__name__", ""))
        package, said = module.partition(".")[0], _OTHERS.get(name.strip("_"), "")
        if package == "torch" and name.startswith("set_"):
            return f"changes a setting of torch ({name})"
        if package.lstrip("_") in _PURE:
            return said
        if package == "time":
            return "" if name == "sleep" else f"reads a clock ({name})"
        return "" if name in _OF_NAMES else said or f"calls {module}.{name}"
    if isinstance(of, torch.Generator):
        return f"asks a generator of random numbers ({name})"
    is_known = kind_of(of) is not Kind.UNKNOWN or isinstance(of, _FRESH)
    return "" if is_known else f"calls {name} of an object of class {type(of).__name__}"


def _is_of_cprofile(hook: Any) -> bool:
    """Whether it is a profiler of Python's own, whose module may be the program: ``python -m cProfile``."""
    return any(each.__name__ == "Profile" and hasattr(each, "runcall") for each in type(hook).__mro__)
