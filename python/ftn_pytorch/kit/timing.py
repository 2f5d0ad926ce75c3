# SPDX-License-Identifier: MIT
"""How much of its time a program spends in functions of a script."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from .unrecorded import unrecorded

_ADVICE = "time the recorded function from outside"


@unrecorded(_ADVICE)
class Timing(contextlib.ContextDecorator):
    """A decorator of functions, or an object for ``with``; what is inside of another counts once. For one thread."""

    def __init__(self) -> None:
        self.is_used = False
        self._depth = 0
        self._entered = self._spent = 0.0
        self._since = time.perf_counter()

    def __enter__(self) -> Timing:
        if not self._depth:
            self.is_used, self._entered = True, time.perf_counter()
        self._depth += 1
        return self

    def __exit__(self, *failure: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._spent += time.perf_counter() - self._entered

    def share(self) -> float:
        """Of the time since the last call of this, or since it was made; from 0 to 1."""
        now = time.perf_counter()
        if self._depth:
            self._spent += now - self._entered
            self._entered = now
        share = self._spent / max(now - self._since, 1e-9)
        self._spent, self._since = 0.0, now
        return share
