# SPDX-License-Identifier: MIT
"""What parts of this package tell the recording of a function that calls them, and where recordings step aside.

No torch is imported here: parts that need none use it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Protocol


class _Recorder(Protocol):
    def refuse(self, why: str) -> None: ...

    def keep(self, tensor: Any) -> None: ...


class _Here(threading.local):
    recorder: _Recorder | None = None
    is_aside = False


_here = _Here()


def refuse(why: str) -> None:
    """The function that is being recorded on this thread, if one is, cannot be. ``why``: a sentence about "it"."""
    if _here.recorder is not None:
        _here.recorder.refuse(why)


def keep(*tensors: Any) -> None:
    """A recording may use these tensors of the package, which live on between calls, as they are in each call."""
    if _here.recorder is not None:
        for tensor in tensors:
            _here.recorder.keep(tensor)


def is_recording() -> bool:
    """True while a function is being recorded on this thread."""
    return _here.recorder is not None


def begin(recorder: _Recorder) -> _Recorder | None:
    """Tell this recorder from now on; returns the one that was told before, for ``end``."""
    before, _here.recorder = _here.recorder, recorder
    return before


def end(before: _Recorder | None) -> None:
    """Undo ``begin``."""
    _here.recorder = before


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Recorded functions of this thread run as they are meanwhile, and their results keep their graph."""
    before, _here.is_aside = _here.is_aside, True
    try:
        yield
    finally:
        _here.is_aside = before


def is_aside() -> bool:
    """True inside of ``aside``."""
    return _here.is_aside
