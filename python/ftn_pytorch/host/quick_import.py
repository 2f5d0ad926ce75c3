# SPDX-License-Identifier: MIT
"""The first import of torch without 20,000 operations on the file system that change no answer.

torch asks ``inspect`` where each of its operators is registered. To find the module of a frame, ``inspect`` resolves
the files of all modules that are loaded. A frame knows its module by name.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

from . import process, variables

_at_work = threading.Lock()


@contextlib.contextmanager
def modules_of_frames_told() -> Iterator[None]:
    """``inspect.getmodule`` answers for frames from their globals meanwhile, if torch is not imported yet.

    Nothing in an interpreter of the program, with FTN_PYTORCH_PLAIN_IMPORT, or while another thread is in here.
    """
    is_of_no_use = "torch" in sys.modules or process.is_adopted() or variables.asks_for("PLAIN_IMPORT")
    if is_of_no_use or not _at_work.acquire(blocking=False):
        yield
        return
    try:
        with _answers_by_globals():
            yield
    finally:
        _at_work.release()


@contextlib.contextmanager
def _answers_by_globals() -> Iterator[None]:
    import inspect
    from types import FrameType

    asked = inspect.getmodule

    def answer(thing: Any, _filename: str | None = None) -> Any:
        name = thing.f_globals.get("__name__") if isinstance(thing, FrameType) else None
        found = sys.modules.get(name) if isinstance(name, str) else None
        return found if found is not None else asked(thing, _filename)

    inspect.getmodule = answer  # type: ignore[assignment]
    try:
        yield
    finally:
        # not where somebody else has replaced it meanwhile
        if inspect.getmodule is answer:
            inspect.getmodule = asked
