# SPDX-License-Identifier: MIT
"""What the doctor has found: one line with a verdict."""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"
NOTE = "note"
WRONG = "wrong"


@dataclass
class Finding:
    """One line: what was looked at, what was found, and what to do about it."""

    name: str
    verdict: str
    """``OK``, ``NOTE`` (works, but worth knowing) or ``WRONG`` (scripts cannot be run)."""
    found: str
    cure: str = ""
    status: str = ""
    """Name of the status of ``ftn_pytorch.h`` that belongs to what is wrong."""

    def sentence(self) -> str:
        """Name, finding and cure in one line."""
        return f"{self.name}: {self.found}" + (f" -> {self.cure}" if self.cure else "")
