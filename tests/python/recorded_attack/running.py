# SPDX-License-Identifier: MIT
"""A case of the attack, run recorded and as it is, and compared after each call.

The text of a case is a module of its own. It has a function ``step``, decorated with ``recorded``, and may have
``change()``, which is called before call 30 of 60. ``must_be_refused`` stands for state that is another one in each
run, ``always_the_same`` for a change that must not show. Where they are defined: ``inputs(call, x)`` gives the
arguments, ``tick(call)`` is called before each call, ``after(result)`` after it, ``finish()`` at the end. Globals are
compared, but for those that begin with ``_``. ``make_module(name, text)`` makes a module that the case can import.
"""

from __future__ import annotations

import collections
import functools
import itertools
import os
import random
import sys
import textwrap
import types
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
import torch

from ftn_pytorch import recorded
from ftn_pytorch.recording.function import without_graph

CALLS, CHANGED_AT, VARIED_FROM = 60, 30, {"early": 0, "late": 20}
HEADER = """
import argparse, array, collections, contextlib, contextvars, copy, ctypes, dataclasses, datetime, decimal, enum
import fractions, functools, io, itertools, math, operator, os, pathlib, pickle, random, re, sys, threading, time, types
import weakref
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_NUMBERS = itertools.count()
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")


class Verdict(NamedTuple):
    """kind: "recorded", "refused", "gave up", "never ready" or "WRONG"; text: the obstacle, or the first difference.

    ``is_ready``: at the end all functions run without Python.
    """

    kind: str
    text: str
    is_ready: bool = False


def verdict(text: str, varied: str = "early", record: Any = recorded, calls: int = CALLS) -> Verdict:
    """Run a case both ways; ``varied`` says whether its input differs in each call, or from call 20 on."""
    with kept_settings():
        expected, _ = _run(text, varied, _as_it_is, [], calls=calls)
    made: list[Any] = []
    with kept_settings():
        found, was_ready = _run(text, varied, record, made, calls=calls)
    if "must_be_refused" in text:
        is_refused = not was_ready and any(each.recording.obstacle for each in made)
        return Verdict("refused", made[0].recording.obstacle) if is_refused else Verdict("WRONG", "it is recorded")
    obstacles = [each.recording.obstacle for each in made if each.recording.obstacle]
    for call, (one, other) in enumerate(itertools.zip_longest(expected, found)):
        if one != other:
            return Verdict("WRONG", f"call {call}: {_difference(one, other)}")
    if obstacles:
        return Verdict("gave up" if was_ready else "refused", obstacles[0])
    is_ready = all(each.recording.is_ready for each in made)
    return Verdict("recorded" if was_ready else "never ready", "", is_ready)


def shows_a_change(text: str) -> bool:
    """False for cases in which ``change`` does nothing, because the step or its input changes, or nothing may."""
    return "always_the_same" not in text and "def change(): pass" not in text


def change_matters(text: str, varied: str = "early") -> bool:
    """Whether the change of a case shows in its results, networks or tensors: without that it cannot fail."""
    runs = []
    for changes in (True, False):
        with kept_settings():
            runs.append([(each[0], each[2]) for each in _run(text, varied, _as_it_is, [], changes, False)[0]])
    return runs[0] != runs[1]


def _as_it_is(function: Any = None, **options: Any) -> Any:
    if function is None:
        return functools.partial(_as_it_is, **options)

    @functools.wraps(function, updated=())
    def call(*args: Any, **named: Any) -> Any:
        keeps_graph = any(isinstance(each, torch.Tensor) and each.requires_grad for each in args)
        result = function(*args, **named)
        return result if keeps_graph and torch.is_grad_enabled() else without_graph(result)

    return call


class kept_settings:
    """Puts back what a case may change in the process. ``folder``: that of its modules."""

    def __init__(self, folder: str = _FOLDER) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        self._modules, self._environment = set(sys.modules), dict(os.environ)
        self._random = (torch.get_rng_state(), random.getstate(), numpy.random.get_state())
        self._dtype, self._threads = torch.get_default_dtype(), torch.get_num_threads()
        self._grad = torch.is_grad_enabled()

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
        torch.use_deterministic_algorithms(False)
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)


def make_module(name: str, text: str, folder: str = _FOLDER, **names: Any) -> types.ModuleType:
    """A module of a text. Its file is there only where the folder is another one than that of the cases."""
    module = types.ModuleType(name)
    module.__file__ = os.path.join(folder, f"{name}.py")
    sys.modules[name] = module
    vars(module).update(names)
    text = HEADER + textwrap.dedent(text)
    if folder != _FOLDER:
        with open(module.__file__, "w") as file:
            file.write(text)
    exec(compile(text, module.__file__, "exec"), vars(module))  # the text of a case
    return module


def _run(
    text: str,
    varied: str,
    record: Any,
    made: list[Any],
    changes: bool = True,
    with_state: bool = True,
    calls: int = CALLS,
) -> tuple[list[Any], bool]:
    """What was seen after each call, and whether a recording was ever used."""

    def recorded(function: Any = None, **options: Any) -> Any:
        if function is None:
            return functools.partial(recorded, **options)
        made.append(record(function, **options))
        return made[-1]

    seen: list[Any] = []
    was_ready = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {"recorded": recorded, "make_module": make_module}
        seed()
        module = vars(make_module(new_name(), text, **names))
        for args, result in calls_of(module, varied, calls, changes):
            state = _state_of_module(module, names, made) if with_state else _numbers_of(module)
            seen.append((state_of(result), state_of(args), state))
            was_ready = was_ready or any(hasattr(each, "recording") and each.recording.is_ready for each in made)
    return seen, was_ready


def new_name() -> str:
    """Of a module."""
    return f"case_{next(_NUMBERS)}"


def seed() -> None:
    """Before a case is made."""
    torch.manual_seed(1)
    random.seed(2)
    numpy.random.seed(3)


def calls_of(module: dict[str, Any], varied: str, calls: int, changes: bool = True) -> Iterator[tuple[tuple, Any]]:
    """Make the calls of a case: arguments as they are after each, and the result, or what was raised."""
    numbers = torch.Generator().manual_seed(4)
    samples = torch.randn(CALLS, 4, 3, generator=numbers).unbind()
    try:
        for call in range(calls):
            x = samples[call if call >= VARIED_FROM[varied] else 0]
            args = module["inputs"](call, x.clone()) if "inputs" in module else (x.clone(),)
            if "tick" in module:
                module["tick"](call)
            if call == CHANGED_AT and changes and "change" in module:
                module["change"]()
            try:
                result = module["step"](*args)
            except Exception as failure:  # what a case raises is part of what it gives
                result = f"{type(failure).__name__}: {failure}"
            yield args, result
            if "after" in module and not isinstance(result, str):
                module["after"](result)
    finally:
        if "finish" in module:
            module["finish"]()


def _state_of_module(module: dict[str, Any], without: Any, made: list[Any]) -> Any:
    walk = _Walk(made)
    names = sorted(name for name in module if not name.startswith("_") and name not in without)
    found = {name: walk.of(module[name]) for name in names}
    kind, numbers, *rest = numpy.random.get_state()
    generators = (torch.get_rng_state().numpy().tobytes(), random.getstate(), (kind, numbers.tobytes(), *rest))
    return {**found, "torch's generator": generators[0], "random": generators[1], "numpy.random": generators[2]}


def _numbers_of(module: dict[str, Any]) -> Any:
    """Tensors and gradients that a module holds itself, or in networks."""
    values = list(module.values())
    tensors = [each for each in values if isinstance(each, torch.Tensor)]
    for net in values:
        if isinstance(net, torch.nn.Module) and not isinstance(net, torch.jit.ScriptModule):
            tensors += [*net.parameters(), *net.buffers()]
    return [(_bits(each), None if each.grad is None else _bits(each.grad)) for each in tensors if each.is_leaf]


def state_of(value: Any) -> Any:
    """All numbers in a value, as something that can be compared."""
    return _Walk([]).of(value)


class _Walk:
    def __init__(self, recorded_functions: list[Any]) -> None:
        self._seen: dict[int, Any] = {}  # the objects too, so that no other one gets an id
        self._recorded = {id(each) for each in recorded_functions}

    def of(self, value: Any) -> Any:
        if isinstance(value, _PLAIN):
            return (type(value).__name__, repr(value))
        if isinstance(value, itertools.count):
            return repr(value)
        if isinstance(value, torch.Generator):
            return value.get_state().numpy().tobytes()
        if isinstance(value, numpy.random.Generator):
            return repr(value.bit_generator.state)
        if isinstance(value, random.Random):
            return value.getstate()
        if id(value) in self._seen:
            return "seen"
        self._seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            return (*_bits(value), value.requires_grad, self.of(value.grad if value.is_leaf else None),
                    self.of(getattr(value, "__dict__", {})))  # fmt: skip
        if isinstance(value, numpy.ndarray):
            return (str(value.dtype), value.shape, value.tobytes())
        if isinstance(value, torch.optim.Optimizer):
            state = [(str(index), self.of(each)) for index, each in enumerate(value.state.values())]
            return state, self.of(value.param_groups), self._fields(value, ("state", "param_groups"))
        if isinstance(value, (dict, types.MappingProxyType, collections.UserDict)):
            return [(str(key), self.of(each)) for key, each in value.items() if key != "recording"]
        if isinstance(value, (list, tuple, collections.deque)):
            return (type(value).__name__, [self.of(each) for each in value])
        if isinstance(value, (set, frozenset)):
            return sorted(map(str, value))
        return self._others(value)

    def _others(self, value: Any) -> Any:
        if id(value) in self._recorded:
            return self._fields(value, ("recording", "__wrapped__")), self.of(value.__wrapped__)
        if isinstance(value, types.ModuleType):
            return self.of(vars(value)) if str(getattr(value, "__file__", "")).startswith(_FOLDER) else None
        if isinstance(value, types.FunctionType):
            cells = [each.cell_contents for each in value.__closure__ or () if _is_filled(each)]
            own = value.__code__.co_filename.startswith(_FOLDER)
            return (self.of(cells), self.of(value.__dict__), self.of(value.__defaults__)) if own else None
        if isinstance(value, types.MethodType):
            return self.of(value.__func__), self.of(value.__self__)
        if isinstance(value, type):
            own = [name for name in vars(value) if not name.startswith("__")]
            return [(name, self.of(vars(value)[name])) for name in own] if _is_own(value) else None
        if type(value).__module__.startswith("ftn_pytorch.kit") and not isinstance(value, torch.nn.Module):
            return self.of(value.state_dict()) if hasattr(value, "state_dict") else None
        if isinstance(value, torch.nn.Module) or _is_own(type(value)):
            return type(value).__name__, self._fields(value, ())
        return None

    def _fields(self, value: Any, without: tuple[str, ...]) -> Any:
        slots = {name for each in type(value).__mro__ for name in getattr(each, "__slots__", ())}
        found = {name: getattr(value, name) for name in sorted(slots) if hasattr(value, name)}
        found |= getattr(value, "__dict__", {})
        # hooks of networks have numbers that are counted in the process
        return [
            (name, len(each) if name.endswith("_hooks") else self.of(each))
            for name, each in found.items()
            if name not in without
        ]


def _is_own(kind: type) -> bool:
    return str(getattr(sys.modules.get(kind.__module__), "__file__", "")).startswith(_FOLDER)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _bits(tensor: torch.Tensor) -> tuple:
    one = tensor.detach().resolve_conj().resolve_neg()
    one = one.to_dense() if one.layout is not torch.strided else one
    number = one.contiguous().reshape(-1).clone()  # memory that NumPy has seen cannot be resized
    return str(tensor.dtype), tuple(tensor.shape), number.view(torch.uint8).numpy().tobytes() if one.numel() else b""


def _difference(one: Any, other: Any) -> str:
    for what, a, b in zip(("result", "arguments", "state"), one or (None,) * 3, other or (None,) * 3):
        if a != b:
            return _first_difference(a, b, what)
    return "nothing"


def _first_difference(one: Any, other: Any, path: str) -> str:
    """The first leaf that differs, with the names and numbers that lead to it."""
    if isinstance(one, dict) and isinstance(other, dict):
        one, other = list(one.items()), list(other.items())
    is_tensor = isinstance(one, tuple) and bool(one) and str(one[0]).startswith("torch.")
    if type(one) is type(other) and isinstance(one, (list, tuple)) and len(one) == len(other) and not is_tensor:
        for place, (a, b) in enumerate(zip(one, other)):
            if a != b:
                if isinstance(a, tuple) and len(a) == 2 and isinstance(a[0], str) and a[0] == b[0]:
                    return _first_difference(a[1], b[1], f"{path}.{a[0]}")
                return _first_difference(a, b, f"{path}[{place}]")
    return f"{path}: {_shown(one)} and {_shown(other)} recorded"


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and len(value) > 2 and value[0] == "torch.float32" and isinstance(value[2], bytes):
        return str(numpy.frombuffer(value[2], numpy.float32)[:3].tolist())
    return str(value)[:160]
