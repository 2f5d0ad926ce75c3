# SPDX-License-Identifier: MIT
"""Settings of the process and of packages, which are no state of a script: whether code has changed them is told."""

from __future__ import annotations

import abc
import os
import sys
from collections.abc import Iterable
from typing import Any

from ..system import process
from . import loaded
from .kinds import ATOMS

_OF_TORCH = ("get_default_dtype", "are_deterministic_algorithms_enabled", "get_num_threads")


def current(packages: Iterable[str], names: set[str]) -> dict[str, Any]:
    """By name: those of torch and Python, and constants of packages that code mentions by these ``names``."""
    found: dict[str, Any] = {}
    torch, numpy, decimal = loaded("torch"), loaded("numpy"), loaded("decimal")
    if torch is not None and hasattr(torch, "get_default_dtype"):
        found.update({f"torch.{name}()": getattr(torch, name)() for name in _OF_TORCH})
        if found["torch.get_num_threads()"] == process.threads_of_program():
            del found["torch.get_num_threads()"]  # the program's, not the script's
    if numpy is not None and hasattr(numpy, "geterr"):
        found["numpy.geterr()"] = numpy.geterr()
    # What nobody has imported has the precision that it begins with.
    found["the precision of decimal"] = 28 if decimal is None else decimal.getcontext().prec
    found.update({"os.environ": dict(os.environ)} if "environ" in names else {})
    found.update({"sys.argv": list(sys.argv)} if "argv" in names else {})
    found.update({"a subclass that is registered with abc": abc.get_cache_token()} if "register" in names else {})
    for package in packages:
        held = vars(sys.modules[package])
        found.update({f"{package}.{name}": held[name] for name in names & held.keys() if type(held[name]) in ATOMS})
    return found
