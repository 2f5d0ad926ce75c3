# SPDX-License-Identifier: MIT
"""A script of the corpus, called as it is or with something in place of ``recorded``, and looked at after each call.

The text of a script is a module of its own. It has a function ``step``, which may be decorated with ``recorded``.
Where they are defined, ``inputs(call, x)`` gives the arguments, ``tick(call)`` is called before each call, ``change()``
before call 30, ``after(result)`` after each call, ``finish()`` at the end. ``make_module(name, text)`` makes a module
that the script can import. ``must_be_refused`` stands for state that is another one in each run, ``always_the_same``
for a change that must not show, ``reload_before_restore`` for a script that is loaded once more before a restart.
Globals are compared, but for those that begin with ``_``.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import os
import pathlib
import random
import sys
import tempfile
import textwrap
import types
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy
import torch

from ftn_pytorch.recording.function import without_graph

from .scripts import Script
from .state import FOLDER, state_of, state_of_module, tensors_of

MOST_CALLS, CHANGED_AT, VARIED_FROM = 60, 30, {"early": 0, "late": 20}
HEADER = """
import argparse, array, collections, contextlib, contextvars, copy, ctypes, dataclasses, datetime, decimal, enum
import fractions, functools, io, itertools, math, operator, os, pathlib, pickle, random, re, sys, threading, time, types
import weakref
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""
# Nothing of this package is named there: a checkpoint looks into all code that a script leads to. A script without any
# state is refused for that alone, so there is a network.
_BEFORE = """
from ftn_pytorch import recorded
a_network_beside = nn.Linear(1, 1)
torch.manual_seed(1); random.seed(2); np.random.seed(3)
"""
_MAKE_MODULE = """
def make_module(name, text):
    path = os.path.join(os.path.dirname(__file__), name + ".py")
    pathlib.Path(path).write_text(HEADER + __import__("textwrap").dedent(text))
    sys.modules.pop(name, None)
    sys.dont_write_bytecode = True
    return __import__(name)
"""
_COUNT = itertools.count()


class Seen(NamedTuple):
    """After a call: the result, the arguments, all that the module leads to, and tensors that have names."""

    result: Any
    arguments: Any
    state: Any
    tensors: Any


class Numbers:
    """What plain Python gives after each call. ``varied``: the input differs in each call, or from call 20 on."""

    def __init__(self, script: Script, varied: str = "early") -> None:
        self._script, self.varied = script, varied

    @functools.cached_property
    def seen(self) -> list[Seen]:
        with kept_settings():
            return run(self._script, self.varied, as_it_is)


def shows_a_change(script: Script) -> bool:
    """False for scripts in which ``change`` does nothing, because the step or its input changes, or nothing may."""
    text = script.text
    return "def change()" in text and "always_the_same" not in text and "def change(): pass" not in text


def change_matters(script: Script, varied: str = "early") -> bool:
    """Whether the change of a script shows in its results, networks or tensors: without that it cannot fail."""
    runs = []
    for changes in (True, False):
        with kept_settings():
            runs.append([(each.result, each.tensors) for each in run(script, varied, as_it_is, changes=changes)])
    return runs[0] != runs[1]


def run(
    script: Script,
    varied: str,
    record: Any,
    after_call: Callable[[], None] = lambda: None,
    changes: bool = True,
) -> list[Seen]:
    """``record``: in place of ``recorded``."""
    seen = []
    with opened(script, record) as (module, names, made):
        for args, result in calls_of(module, script, varied, changes):
            state = state_of_module(module, names, made)
            seen.append(Seen(state_of(result), state_of(args), state, tensors_of(module)))
            after_call()
    return seen


@contextlib.contextmanager
def opened(script: Script, record: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[Any]]]:
    """The module of a script, the names that it was given, and its functions as ``record`` has made them."""
    made: list[Any] = []

    def recorded(function: Any = None, **options: Any) -> Any:
        if function is None:
            return functools.partial(recorded, **options)
        made.append(record(function, **options))
        return made[-1]

    with warnings.catch_warnings(), files_of(script):
        warnings.simplefilter("ignore")
        names = {"recorded": recorded, "make_module": make_module}
        seed()
        module = vars(make_module(new_name(), script.text, **names))
        if "recorded" not in script.text:
            module["step"] = recorded(module["step"])
        yield module, names, made


@contextlib.contextmanager
def files_of(script: Script) -> Iterator[str]:
    """A folder with the files beside a script, from which it imports."""
    os.makedirs(FOLDER, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        for name, text in script.beside.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        sys.path.insert(0, folder)
        try:
            yield folder
        finally:
            sys.path.remove(folder)


def text_of_file(script: Script) -> str:
    """What the library loads."""
    more = f"HEADER = {HEADER!r}\n{_MAKE_MODULE}" if "make_module" in script.text else ""
    return HEADER + _BEFORE + more + script.text


def as_it_is(function: Any = None, **options: Any) -> Any:
    """In place of ``recorded``: graphs end at results, as they do there."""
    if function is None:
        return functools.partial(as_it_is, **options)

    @functools.wraps(function, updated=())
    def call(*args: Any, **named: Any) -> Any:
        keeps_graph = any(isinstance(each, torch.Tensor) and each.requires_grad for each in args)
        result = function(*args, **named)
        return result if keeps_graph and torch.is_grad_enabled() else without_graph(result)

    return call


def _casts() -> int:
    """How many blocks of autocast are entered."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


class kept_settings:
    """Puts back what a script may change in the process. ``folder``: that of its modules.

    Kernels may add up in another order with more threads, so all processes that are compared have one.
    """

    def __init__(self, folder: str = FOLDER) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        self._modules, self._environment = set(sys.modules), dict(os.environ)
        self._random = (torch.get_rng_state(), random.getstate(), numpy.random.get_state())
        self._dtype, self._threads = torch.get_default_dtype(), torch.get_num_threads()
        self._grad, self._cast, self._casts = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), _casts()
        torch.set_num_threads(1)

    def __exit__(self, *failure: Any) -> None:
        for name in set(sys.modules) - self._modules:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(self._folder):
                del sys.modules[name]
        os.environ.clear()
        os.environ.update(self._environment)
        torch.set_rng_state(self._random[0])
        random.setstate(self._random[1])
        numpy.random.set_state(self._random[2])
        torch.set_default_dtype(self._dtype)
        torch.set_grad_enabled(self._grad)
        torch.set_autocast_enabled("cpu", self._cast)
        while _casts() > self._casts:  # what was entered and not left keeps casts of parameters
            torch.autocast_decrement_nesting()
        torch.clear_autocast_cache()
        torch.use_deterministic_algorithms(False)
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)


def make_module(name: str, text: str, folder: str = FOLDER, **names: Any) -> types.ModuleType:
    """A module of a text. Its file is there only where the folder is another one than that of the corpus."""
    module = types.ModuleType(name)
    module.__file__ = os.path.join(folder, f"{name}.py")
    sys.modules[name] = module
    vars(module).update(names)
    text = HEADER + textwrap.dedent(text)
    if folder != FOLDER:
        with open(module.__file__, "w") as file:
            file.write(text)
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(keepends=True), module.__file__)
    code = compile(text, module.__file__, "exec", dont_inherit=True)  # the text of a script
    exec(code, vars(module))
    return module


def new_name() -> str:
    """Of a module."""
    return f"case_{next(_COUNT)}"


def seed() -> None:
    """Before a script is loaded."""
    torch.manual_seed(1)
    random.seed(2)
    numpy.random.seed(3)


class Raised(str):
    """What a call has raised, in place of a result."""


def calls_of(
    module: dict[str, Any],
    script: Script,
    varied: str,
    changes: bool = True,
    first: int = 0,
    last: int | None = None,
    device: str = "cpu",
) -> Iterator[tuple[tuple, Any]]:
    """Make the calls of a script: arguments as they are after each, and the result, or ``Raised``.

    ``first``, ``last``: calls before and from there on are made elsewhere.
    """
    result = None
    turns = turns_of(module, script, varied, changes, first, last, device=device)
    with contextlib.closing(turns), contextlib.suppress(StopIteration):
        while True:
            args = turns.send(result)
            result = result_of(module, args)
            yield args, result


def result_of(module: dict[str, Any], args: tuple) -> Any:
    """One call. What a script raises is part of what it gives."""
    try:
        return module["step"](*args)
    except Exception as failure:
        return Raised(f"{type(failure).__name__}: {failure}")


def turns_of(
    module: dict[str, Any],
    script: Script,
    varied: str,
    changes: bool = True,
    first: int = 0,
    last: int | None = None,
    rank: int = 0,
    device: str = "cpu",
) -> Generator[tuple, Any, None]:
    """All that a script wants to happen around its calls: gives arguments of each, and is sent the result."""
    generator = torch.Generator("cpu").manual_seed(4 + rank)
    samples = torch.randn(MOST_CALLS, 4, 3, generator=generator, device="cpu").unbind()
    try:
        for call in range(first, script.calls if last is None else last):
            x = samples[call % MOST_CALLS if call >= VARIED_FROM[varied] else 0].to(device)
            args: tuple = (x.clone(),) if script.has_input else ()
            if "inputs" in module:
                args = module["inputs"](call, x.clone())
            if "tick" in module:
                module["tick"](call)
            if call == CHANGED_AT and changes and "change" in module:
                module["change"]()
            result = yield args
            if "after" in module and not isinstance(result, Raised):
                module["after"](result)
    finally:
        if "finish" in module and last in (None, script.calls):
            module["finish"]()
