# SPDX-License-Identifier: MIT
"""When a recording that runs without Python is compared with its function once more.

What no rule sees may change long after the first checks. The runs that are checked are drawn from their number alone,
so that ranks that make the same calls have their checks in the same ones, and do not wait for one after the other.
"""

from __future__ import annotations

import os
import time
from typing import Any

from ..system import process
from .tape import Tape

VARIABLE = "FTN_PYTORCH_CHECK_EVERY"
_EVERY = 1000
_FIRST = 100
_SHARE = 0.0025
"""Of the time of the program that checks may take. Where it is more, one of two is made, of four, and so on."""
_RAREST = 64
_MOST_BYTES = 256 << 20
"""Of tensors that are copied for a comparison."""
_NEVER = (1 << 63) - 1


def every() -> int:
    """One run in how many; 0 for none."""
    text = os.environ.get(VARIABLE, "")
    if text and not (text.isascii() and text.isdigit()):
        process.warn_once(f"{VARIABLE}={text!r} is no number of calls: one in {_EVERY} is checked")
    elif text:
        return int(text)
    return _EVERY


class LateChecks:
    """Those of one recording, which does not run in a call that is to be checked: ``why()`` is "check" then.
    replay: that of the extension, also where a graph or compiled code makes the runs."""

    def __init__(self, replay: Any, tape: Tape) -> None:
        self._replay, self._every = replay, every()
        if sum(tensor.nbytes for (tensor,) in tape.memory) > _MOST_BYTES:
            self._every = 0
        self._took = float("inf")
        self._writes = bool(tape.written or tape.written_inputs or tape.gradients_after or tape.left)
        self._wait_until(min(_FIRST, self._every))

    def begin(self) -> bool:
        """A check is due; False if it must not be made. The recording runs in it."""
        self._begin, self._runs = time.perf_counter(), self._replay.runs
        self._replay.check_at = _NEVER
        # what another thread learns with the same recording meanwhile would be taken back
        return not (self._writes and self._replay.is_shared)

    def told(self) -> str:
        """Which call is checked, and which ones may be wrong if it is."""
        runs = f"all that have run without Python since number {self._runs_then} may be wrong"
        return f"something that it uses has changed and was not seen, {runs}: in number {self._runs + 1}"

    def end(self) -> None:
        """It was made."""
        of_a_run = (self._begin - self._since) / max(self._runs - self._runs_then, 1)
        # one that was held up by something else does not tell
        self._took = min(self._took, time.perf_counter() - self._begin)
        rare = 1
        while self._took > _SHARE * of_a_run * self._every * rare and rare < _RAREST:
            rare *= 2
        place = self._replay.runs // self._every + 1
        place += -place % rare
        # nothing that a script does in each hundredth call must be what is never checked
        self._wait_until(place * self._every + place * 7919 % self._every)

    def _wait_until(self, run: int) -> None:
        self._since, self._runs_then = time.perf_counter(), self._replay.runs
        self._replay.check_at = run if self._every else _NEVER
