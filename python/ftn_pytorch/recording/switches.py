# SPDX-License-Identifier: MIT
"""Switches of installed packages in Python: names of a module, and of its classes, to which its own functions give
other numbers or texts.

``torch.nn.utils.parametrize.cached`` is one, ``tempfile.tempdir`` another, ``Distribution.set_default_validate_args``
sets a third. Code that reads such a name does something else after somebody has used it.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..system import private_names
from ..values.code_names import codes_in
from ..values.held import dict_of_class

_STORES = {dis.opmap["STORE_GLOBAL"], dis.opmap["STORE_ATTR"]}


@functools.lru_cache(maxsize=10000)
def switches_in(code: CodeType, module: str) -> tuple[tuple[dict[str, Any], str], ...]:
    """Those that a piece of code of a module reads: where they stand, and their names."""
    found = _switches_of(module)
    return tuple((space, name) for name, space in found if name in code.co_names)


@functools.lru_cache(maxsize=1000)
def _switches_of(module: str) -> list[tuple[str, dict[str, Any]]]:
    of = sys.modules.get(module) if module not in private_names.MODULES_OF_MODES else None
    codes = _codes_of(of, vars(of)) if isinstance(of, ModuleType) else ()
    stored = (each for code in codes for each in codes_in(code) if not _STORES.isdisjoint(each.co_code[::2]))
    return [pair for code in stored for pair in _stored_by(code, vars(of))]


def _stored_by(code: CodeType, space: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    classes = {name for name in code.co_names if isinstance(space.get(name), type)}
    steps = list(dis.get_instructions(code)) if classes or dis.opmap["STORE_GLOBAL"] in code.co_code[::2] else []
    # what code counts with, such as the numbers of hooks, is no switch
    counts = {step.argval for step in steps if step.opname == "LOAD_ATTR"}
    for before, step in zip(steps, steps[1:]):
        if step.opname == "STORE_GLOBAL":
            yield step.argval, space
        elif (step.opname, before.opname) == ("STORE_ATTR", "LOAD_GLOBAL") and step.argval not in counts:
            yield from ((step.argval, dict_of_class(space[each])) for each in classes & {before.argval})


def _codes_of(module: ModuleType, space: Any) -> Iterator[CodeType]:
    """Of functions and methods that were written there; no code of what else stands there is run."""
    for value in list(space.values()):
        if issubclass(type(value), type) and vars(value).get("__module__") == module.__name__ and space is vars(module):
            yield from _codes_of(module, vars(value))
        value = value.__func__ if type(value) in (staticmethod, classmethod) else value
        while type(value) is FunctionType and "__wrapped__" in vars(value):
            value = vars(value)["__wrapped__"]
        if type(value) is FunctionType and value.__globals__ is vars(module):
            yield value.__code__
