# SPDX-License-Identifier: MIT
"""One recording of a function, or one that is to come, and how far it is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import collectives, late_checks
from .tape import Tape

_EXCUSES = 3


@dataclass(eq=False)
class Variant:
    """One recording, or one that is to come, for one set of shapes, types and modes, which is its key."""

    key: Any
    calls: int = 0
    attempts: int = 0
    tape: Tape | None = None
    replay: Any = None
    """Of the extension."""
    runner: Any = None
    """What makes its runs: the same, or graphs or compiled code with its help."""
    run: Any = None
    """All of a run: ``runner``, and what there is to do in Python."""
    is_plain: bool = False
    """These calls cannot be recorded, and others can."""
    compared: collectives.Compared | None = None
    """What is compared in place of a recording that asks other ranks."""
    checks: int = 0
    largest: dict[int, float] | None = None
    """Of each value that is compared, in all checks so far; None where these are bit for bit."""
    doubt: str = ""
    """What has differed in a check; the next call tells why."""
    late: late_checks.LateChecks | None = None
    """When it is checked again, once it is ready."""
    excuses: int = 0
    """How many late checks in a row have found other values in names, as where other threads use these, too."""
    astray: int = 0
    """How many calls in a row have not gone its way, because of numbers in tensors."""
    ran: int = 0
    """How often it had run then."""
    postponed: int = 0
    """How many checks in a row have shown nothing, because of others."""
    pause: int = 0
    """How many calls are left as they are before the next check."""

    def has_excuse(self) -> bool:
        """A check has found other values in names, and there are other threads. False if late ones find them again and
        again."""
        self.excuses += self.late is not None
        return self.excuses < _EXCUSES

    def goes_astray(self, limit: int) -> bool:
        """A call has not gone its way; true if so many in a row have not."""
        self.astray = self.astray + 1 if self.ran == self.replay.runs else 1
        self.ran = self.replay.runs
        return self.astray >= limit
