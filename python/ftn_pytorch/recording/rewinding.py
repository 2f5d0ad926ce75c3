# SPDX-License-Identifier: MIT
"""Runs that draw random numbers before a number in a tensor sends them another way than the one that was recorded."""

from __future__ import annotations

from typing import Any

import torch


class Rewinding:
    """Runs like ``Replay`` of the extension. Where that gives up on its way, the function is to draw the same numbers
    again."""

    def __init__(self, replay: Any) -> None:
        self._replay = replay

    def run(self, args: tuple, named: dict[str, Any]) -> Any:
        state = torch.default_generator.get_state()
        found = self._replay.run(args, named)
        if found is NotImplemented and self._replay.why()[0] == "failure":
            torch.default_generator.set_state(state)
        return found

    def why(self) -> tuple[str, int]:
        return self._replay.why()

    @property
    def runs(self) -> int:
        return self._replay.runs

    @property
    def is_shared(self) -> bool:
        return self._replay.is_shared

    @property
    def check_at(self) -> int:
        return self._replay.check_at

    @check_at.setter
    def check_at(self, run: int) -> None:
        self._replay.check_at = run
