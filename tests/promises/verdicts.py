# SPDX-License-Identifier: MIT
"""What becomes of a promise."""

from __future__ import annotations

from typing import NamedTuple

SAME, REFUSED, WRONG = "same", "refused", "wrong"


class Verdict(NamedTuple):
    """kind: the same numbers bit for bit, "refused", or "wrong". text: the refusal, or the first difference."""

    kind: str
    text: str = ""
