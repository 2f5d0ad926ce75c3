# SPDX-License-Identifier: MIT
"""What among the names of a script is state, and where state hides that no name of the script leads to."""

from __future__ import annotations

import inspect
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from .. import instances, loading
from ..conventions import PREFIX
from ..values import Unstorable, is_array, is_number, is_tensor
from .capture import Collector, holds_state, type_of
from .objects import access_to, holds, holds_objects, is_module, is_trainable

_CONTAINERS = (list, dict, defaultdict, OrderedDict, Counter, set, deque, bytearray)
_SCALARS = (type(None), bool, int, float, complex, str, bytes, tuple)


class Left(dict):
    """Names that are not kept, and why; ``lost`` has those among them that seem to have a state."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: dict[str, str] = {}


def find(namespace: Mapping[str, Any], assigned: set[str]) -> tuple[dict[str, Any], Left]:
    """The names of a script that are state, and those that are not.

    ``assigned``: global names that its functions assign to. Functions, classes and modules are neither.
    """
    seen: set[int] = set()
    found, left = {}, Left()
    for name, value in namespace.items():
        is_code = inspect.isroutine(value) or isinstance(value, (type, ModuleType))
        if is_code or name.startswith(PREFIX) or (name.startswith("__") and name.endswith("__")):
            continue
        why = _why_not(name, value, assigned)
        if why:
            left[name] = why
            if why == type_of(value) and (holds_state(value) or inspect.isgenerator(value)):
                left.lost[name] = why
        elif not (_is_object(value) and id(value) in seen):
            seen.add(id(value))
            found[name] = value
    return found, left


def _is_object(value: Any) -> bool:
    return instances.is_plain(type(value)) or holds_objects(value)


def _why_not(name: str, value: Any, assigned: set[str]) -> str:
    """Why a name is not kept, empty if it is."""
    if holds_objects(value) or holds(value, is_trainable):
        return ""
    if isinstance(value, _SCALARS) or is_number(value):
        if name not in assigned:
            return "no function assigns to it"
    elif is_tensor(value) or is_array(value) or type(value) in _CONTAINERS or instances.is_plain(type(value)):
        if name.isupper():
            return "a constant by its name"
        if instances.is_plain(type(value)):
            return ""
    else:
        return type_of(value)
    return "" if _is_storable(value) else type_of(value)


def _is_storable(value: Any) -> bool:
    try:
        Collector(copies=False).encode(value, "")
    except Unstorable:
        return False
    return True


def assigned_in(namespace: Mapping[str, Any]) -> set[str]:
    """Global names that functions of a script assign to."""
    name = namespace.get("__name__")
    codes = (code for value in namespace.values() for code in _codes_of(value, name))
    return {assigned for code in codes for assigned in loading.names_of(code, "STORE_GLOBAL")}


def _codes_of(value: Any, module: str | None) -> Iterator[CodeType]:
    """Code of a function or class that the script defines, also below decorators."""
    if getattr(value, "__module__", None) != module:
        return
    for part in vars(value).values() if isinstance(value, type) else [value]:
        function = _function_of(part)
        if function is not None:
            yield function.__code__


def _function_of(value: Any) -> FunctionType | None:
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, (classmethod, staticmethod, MethodType)):
        value = value.__func__
    try:
        function = inspect.unwrap(value) if callable(value) else None
    except Exception:  # of a __getattr__ of the script
        return None
    return function if isinstance(function, FunctionType) else None


def hidden(namespace: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Objects with a state and tensors that are trained, which functions of a script reach, but no name of it does.

    They are in the closures and defaults of functions, in attributes of classes, and in the user's own modules that the
    script imports. Each comes with its place, such as "helpers.net".
    """
    for place, value in _reached(namespace, "", {id(namespace)}):
        if access_to(value) is not None or is_trainable(value) or holds_objects(value):
            yield place, value


def _reached(namespace: Mapping[str, Any], prefix: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    for name, value in list(namespace.items()):
        if name.startswith("__") or not (isinstance(value, (type, ModuleType)) or callable(value)):
            continue
        if isinstance(value, ModuleType):
            if instances.is_own_module(value.__name__):
                yield from _names_of(vars(value), prefix + name, seen)
        elif isinstance(value, type):
            if instances.is_own_module(value.__module__) and id(value) not in seen:
                seen.add(id(value))
                for attribute, each in list(vars(value).items()):
                    yield f"{prefix}{name}.{attribute}", each
                    yield from _behind(each, f"{prefix}{name}.{attribute}", seen)
        else:
            yield from _behind(value, prefix + name, seen)


def _names_of(module: dict[str, Any], name: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(module) in seen:
        return
    seen.add(id(module))
    for each, value in list(module.items()):
        yield f"{name}.{each}", value
    yield from _reached(module, f"{name}.", seen)


def _behind(value: Any, place: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """What a function holds."""
    function = None if access_to(value) is not None else _function_of(value)
    if function is None or id(function) in seen or not instances.is_own_module(function.__module__ or ""):
        return
    seen.add(id(function))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        yield f"{name} in {place}", content
        yield from _behind(content, f"{name} in {place}", seen)
    for number, default in enumerate(function.__defaults__ or ()):
        yield f"default {number + 1} of {place}", default
    yield from _names_of(function.__globals__, function.__module__ or "", seen)


def is_at_rest(value: Any) -> bool:
    """True for a network that nobody can train."""
    return is_module(value) and not any(each.requires_grad for each in value.parameters())
