# SPDX-License-Identifier: MIT
"""Promise: what ``recorded`` makes of a function gives what the function gives, and changes what it changes."""

from __future__ import annotations

import itertools
from typing import Any

import ftn_pytorch

from .plain import Numbers, kept_settings, run
from .scripts import Script
from .state import difference
from .verdicts import REFUSED, SAME, WRONG, Verdict


def recorded(script: Script, plain: Numbers, record: Any = ftn_pytorch.recorded) -> Verdict:
    """Refused where a function has an obstacle at the end, whether it was recorded before or not."""
    made: list[Any] = []
    was_ready = []

    def made_by(function: Any, **options: Any) -> Any:
        made.append(record(function, **options))
        return made[-1]

    def look() -> None:
        was_ready.append(any(hasattr(each, "recording") and each.recording.is_ready for each in made))

    with kept_settings():
        found = run(script, plain.varied, made_by, look)
    obstacles = [each.recording.obstacle for each in made if each.recording.obstacle]
    if "must_be_refused" in script.text:
        is_refused = obstacles and not any(was_ready)
        return Verdict(REFUSED, obstacles[0]) if is_refused else Verdict(WRONG, "it is recorded")
    for call, (one, other) in enumerate(itertools.zip_longest(plain.seen, found)):
        if why := difference(one, other):
            return Verdict(WRONG, f"call {call}: {why}")
    if obstacles:
        return Verdict(REFUSED, obstacles[0])
    if script.must_be_ready and not all(each.recording.is_ready for each in made):
        return Verdict(REFUSED, "it is not ready")
    return Verdict(SAME)
