# SPDX-License-Identifier: MIT
"""Switches of installed packages in Python: names of a module to which its own functions give other numbers or texts.

``torch.nn.utils.parametrize.cached`` is one, ``tempfile.tempdir`` another. Code that reads such a name does something
else after somebody has used it.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..system import private_names
from ..values.code_names import codes_in, named_by

_STORES = dis.opmap["STORE_GLOBAL"]


@functools.lru_cache(maxsize=10000)
def switches_in(code: CodeType, module: str) -> tuple[str, ...]:
    """Those that a piece of code reads, which looks its names up in a module."""
    found = _switches_of(module)
    return tuple(name for name in code.co_names if name in found) if found else ()


@functools.lru_cache(maxsize=1000)
def _switches_of(module: str) -> frozenset[str]:
    of = sys.modules.get(module) if module not in private_names.MODULES_OF_MODES else None
    codes = _codes_of(of, vars(of)) if isinstance(of, ModuleType) else ()
    stored = (each for code in codes for each in codes_in(code) if _STORES in each.co_code[::2])
    return frozenset(name for code in stored for name in named_by(code, "STORE_GLOBAL"))


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
