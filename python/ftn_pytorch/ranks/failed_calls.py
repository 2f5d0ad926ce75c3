# SPDX-License-Identifier: MIT
"""Calls of a script that fail on one rank before they average gradients.

The other ranks wait for this one, and would take the gradients of its next call for those of this one. So such a call
counts: the next average tells all ranks that they are in different calls.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol


class _Calls(Protocol):
    def position(self) -> Any: ...

    def is_at(self, position: Any) -> bool: ...

    def count(self) -> None: ...


class _Here(threading.local):
    at_work: Counted | None = None


_here = _Here()


class Counted:
    """A function of a script that is loaded on several ranks; it does the same, and knows what it averages."""

    def __init__(self, function: Callable) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._averages: list[weakref.ref[_Calls]] = []
        self._failed = 0
        """Calls that failed before it was known what is averaged."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        before = [(calls, calls.position()) for each in self._averages if (calls := each()) is not None]
        outer, _here.at_work = _here.at_work, self
        try:
            return self._function(*args, **named)
        except BaseException:
            if not self._averages:
                self._failed += 1
            for calls, position in before:
                if calls.is_at(position):
                    _count(calls)
            raise
        finally:
            _here.at_work = outer

    def averaged(self, calls: _Calls) -> None:
        """It averages a network, whose calls are counted there."""
        if not any(calls is known() for known in self._averages):
            self._averages = [each for each in self._averages if each() is not None] + [weakref.ref(calls)]
            for _ in range(self._failed):
                _count(calls)


def averaged(calls: _Calls) -> None:
    """The function that is called on this thread averages a network, whose calls are counted there."""
    if _here.at_work is not None:
        _here.at_work.averaged(calls)


def _count(calls: _Calls) -> None:
    import torch

    with torch.no_grad():
        calls.count()
