# SPDX-License-Identifier: MIT
"""Methods and numbers of the kit that no recording could follow: functions that use them in a call are not recorded."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ..system import thread_recorder

Part = TypeVar("Part")
_SPECIAL = ("__call__", "__enter__", "__getitem__", "__len__")


def unrecorded(advice: str, **others: str | None) -> Callable[[type[Part]], type[Part]]:
    """Decorator of a class whose methods no recorded function may call: those with public names, and ``_SPECIAL``.

    advice: what to do in place of calling them in a recorded function. others: that of single methods, None for one
    that may be recorded.
    """

    def decorate(owner: type[Part]) -> type[Part]:
        for name, method in list(vars(owner).items()):
            text = others.get(name.strip("_"), advice)
            if text is None or (name.startswith("_") and name not in _SPECIAL):
                continue
            if isinstance(method, property):
                setattr(owner, name, property(_refusing(method.fget, text), doc=method.__doc__))  # type: ignore[arg-type]
            elif inspect.isfunction(method):
                setattr(owner, name, _refusing(method, text))
        return owner

    return decorate


def _refusing(method: Callable, advice: str) -> Callable:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        if thread_recorder.is_recording():  # the text takes longer than most methods
            refuse(self, f"calls {method.__name__}", advice)
        return method(self, *args, **named)

    return call


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
