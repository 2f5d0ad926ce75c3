# SPDX-License-Identifier: MIT
"""Methods and numbers of the kit that no recording could follow: functions that use them in a call are not recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..system import thread_recorder


def unrecorded(advice: str) -> Callable[[Callable], Callable]:
    """Decorator of methods. ``advice``: what to do in place of calling it in a recorded function."""

    def decorate(method: Callable) -> Callable:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **named: Any) -> Any:
            if thread_recorder.is_recording():  # the text takes longer than most methods
                refuse(self, f"calls {method.__name__}", advice)
            return method(self, *args, **named)

        return call

    return decorate


def refuse(part: Any, what: str, advice: str) -> None:
    """The function that is being recorded, if one is, cannot be."""
    thread_recorder.refuse(
        f"it {what} of kit.{type(part).__name__}, which counts, draws or decides in Python: {advice}"
    )


class Number:
    """A field that changes from call to call, and that is no tensor."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, part: Any, owner: type | None = None) -> Any:
        if part is None:
            return self
        if thread_recorder.is_recording():
            refuse(part, f"reads {self._name}", "read it outside of the recorded function")
        return vars(part)[self._name]

    def __set__(self, part: Any, value: Any) -> None:
        vars(part)[self._name] = value
