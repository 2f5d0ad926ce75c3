# SPDX-License-Identifier: MIT
"""All numbers that a script has after a call, as something that can be compared, and the first that differs."""

from __future__ import annotations

import collections
import itertools
import os
import random
import sys
import tempfile
import types
from typing import Any

import numpy
import torch

FOLDER = os.path.join(tempfile.gettempdir(), "script_of_the_corpus")
"""Where files of scripts are said to be: code of these is looked into."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def state_of_module(module: dict[str, Any], without: Any, made: list[Any]) -> Any:
    """Everything that a module leads to, and the random generators. ``made``: its recorded functions."""
    walk = _Walk(made)
    names = sorted(name for name in module if not name.startswith("_") and name not in without)
    found = {name: walk.of(module[name]) for name in names}
    kind, numbers, *rest = numpy.random.get_state()
    generators = (torch.get_rng_state().numpy().tobytes(), random.getstate(), (kind, numbers.tobytes(), *rest))
    return {**found, "torch's generator": generators[0], "random": generators[1], "numpy.random": generators[2]}


def tensors_of(module: dict[str, Any]) -> dict[str, Any]:
    """Tensors and gradients that a module holds itself, or in networks, by name."""
    found: dict[str, Any] = {}
    for name, value in module.items():
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, torch.nn.Module) and not isinstance(value, torch.jit.ScriptModule):
            for inner, tensor in (*value.named_parameters(), *value.named_buffers()):
                found[f"{name}.{inner}"] = tensor
    return {
        name: (_bits(each), None if each.grad is None else _bits(each.grad))
        for name, each in found.items()
        if each.is_leaf and not name.startswith("_")
    }


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
            numbers = self.of(value.tolist()) if value.dtype == object else value.tobytes()
            return (str(value.dtype), value.shape, numbers)
        if isinstance(value, torch.optim.Optimizer):
            state = [(str(index), self.of(each)) for index, each in enumerate(value.state.values())]
            groups = [self.of(dict(sorted(each.items()))) for each in value.param_groups]  # torch gives another order
            return state, groups, self._fields(value, ("state", "param_groups"))
        if isinstance(value, (dict, types.MappingProxyType, collections.UserDict)):
            return [(_name(key), self.of(each)) for key, each in value.items() if key != "recording"]
        if isinstance(value, (list, tuple, collections.deque)):
            return (type(value).__name__, [self.of(each) for each in value])
        if isinstance(value, (set, frozenset)):
            return sorted(map(str, value))
        return self._others(value)

    def _others(self, value: Any) -> Any:
        if id(value) in self._recorded:
            return self._fields(value, ("recording", "__wrapped__")), self.of(value.__wrapped__)
        if isinstance(value, types.ModuleType):
            own = {name: each for name, each in vars(value).items() if not name.startswith("__")}
            return self.of(own) if str(getattr(value, "__file__", "")).startswith(FOLDER) else None
        if isinstance(value, types.FunctionType):
            cells = [each.cell_contents for each in value.__closure__ or () if _is_filled(each)]
            own = value.__code__.co_filename.startswith(FOLDER)
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
            (name, len(each) if "_hooks" in name and isinstance(each, dict) else self.of(each))
            for name, each in found.items()
            if name not in without
        ]


def _name(key: Any) -> str:
    """The module of a script has another name in each run."""
    return key.__qualname__ if isinstance(key, type) else str(key)


def _is_own(kind: type) -> bool:
    return str(getattr(sys.modules.get(kind.__module__), "__file__", "")).startswith(FOLDER)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _bits(tensor: torch.Tensor) -> tuple:
    one = tensor.detach().cpu().resolve_conj().resolve_neg()
    one = one.to_dense() if one.layout is not torch.strided else one
    number = one.contiguous().reshape(-1).clone()  # memory that NumPy has seen cannot be resized
    return str(tensor.dtype), tuple(tensor.shape), number.view(torch.uint8).numpy().tobytes() if one.numel() else b""


def difference(one: Any, other: Any) -> str:
    """The first one between what is seen of plain Python and of something else after a call; empty if there is none."""
    if one is None or other is None:
        return "a call is missing"
    for what in one._fields:
        a, b = getattr(one, what), getattr(other, what)
        if a != b:
            return _first_difference(a, b, what)
    return ""


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
