# SPDX-License-Identifier: MIT
"""All calls of recorded functions that the modules test_recorded* make, as cases that can be made again elsewhere.

A case is a test function with what parametrises it.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

MODULES = (
    "test_recorded",
    "test_recorded_calls",
    "test_recorded_gradients",
    "test_recorded_known",
    "test_kit_recorded",
)
LEFT_OUT = {
    "recorded-memory_stays_flat": "the file is no part of it",
}
SLOW = (
    "recorded_calls-a_failure_gives_the_text_of_the_function",
    "recorded_calls-threads_share_a_recording",
)


class Case(NamedTuple):
    """A function that makes calls of recorded functions. ``given``: its arguments by name, as far as they are known."""

    name: str
    function: Callable[..., Any]
    given: dict[str, Any]
    is_slow: bool = False

    def run(self, fixture: Callable[[str], Any]) -> None:
        """``fixture``: gives the arguments that are fixtures, by name."""
        names = inspect.signature(self.function).parameters
        self.function(**{name: self.given[name] if name in self.given else fixture(name) for name in names})


def of_tests() -> Iterator[Case]:
    """The test functions of ``MODULES``, on the host."""
    for module in MODULES:
        for name, function in vars(importlib.import_module(module)).items():
            if name.startswith("test_") and function.__module__ == module:
                yield from _expanded(module, name.removeprefix("test_"), function)


def _expanded(module: str, name: str, function: Any) -> Iterator[Case]:
    marks = getattr(function, "pytestmark", [])
    tables = [each.args for each in marks if each.name == "parametrize"]
    columns = [[(keys, value) for value in values] for keys, values in tables]
    is_slow = any(each.name == "slow" for each in marks)
    for row in itertools.product(*columns):
        given: dict[str, Any] = {"device": "cpu"}
        label, slow = [], is_slow
        for keys, value in row:
            slow = slow or any(each.name == "slow" for each in getattr(value, "marks", ()))
            value = value.values[0] if hasattr(value, "marks") else value
            names = [each.strip() for each in keys.split(",")]
            given.update(zip(names, value if len(names) > 1 else [value]))
            label.append(getattr(value, "__name__", str(value)))
        full = f"{module.removeprefix('test_')}-{name}"
        if full not in LEFT_OUT:
            yield Case("-".join([full, *label]), function, given, slow or full in SLOW)
