# SPDX-License-Identifier: MIT
"""The first import of torch without 20,000 operations on the file system that change no answer.

torch asks ``inspect`` where each of its operators is registered. To find the module of a frame, ``inspect`` resolves
the files of all modules that are loaded. A frame knows its module by name. It also looks for the same source file
each time, and whether that has changed.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from . import process, variables

_at_work = threading.Lock()


@contextlib.contextmanager
def modules_of_frames_told() -> Iterator[None]:
    """``inspect`` tells the module of a frame from its globals, and looks at a file once, if torch is not imported yet.

    Nothing in an interpreter of the program, with FTN_PYTORCH_PLAIN_IMPORT, or while another thread is in here.
    """
    is_of_no_use = "torch" in sys.modules or process.is_adopted() or variables.asks_for("PLAIN_IMPORT")
    if is_of_no_use or not _at_work.acquire(blocking=False):
        yield
        return
    try:
        with _known_answers():
            yield
    finally:
        _at_work.release()


@contextlib.contextmanager
def _known_answers() -> Iterator[None]:
    import inspect
    import linecache
    from types import FrameType

    asked, asked_for_source, asked_for_change = inspect.getmodule, inspect.getsourcefile, linecache.checkcache
    sources: dict[str, str] = {}
    looked_at: set[str] = set()
    own = threading.get_ident()

    def module(thing: Any, _filename: str | None = None) -> Any:
        name = thing.f_globals.get("__name__") if isinstance(thing, FrameType) else None
        found = sys.modules.get(name) if isinstance(name, str) else None
        return found if found is not None else asked(thing, _filename)

    def source(thing: Any) -> str | None:
        file = inspect.getfile(thing)
        found = sources[file] if file in sources else asked_for_source(thing)
        if found is not None:
            sources[file] = found
        return found

    def change(filename: str | None = None) -> None:
        # another thread asks for files of its own, which may have changed meanwhile
        if threading.get_ident() != own or filename is None or filename not in looked_at:
            asked_for_change(filename)
        if threading.get_ident() == own and filename is not None:
            looked_at.add(filename)

    with (
        _replaced(inspect, "getmodule", module),
        _replaced(inspect, "getsourcefile", source),
        _replaced(linecache, "checkcache", change),
    ):
        yield


@contextlib.contextmanager
def _replaced(place: ModuleType, name: str, answer: Callable[..., Any]) -> Iterator[None]:
    asked = getattr(place, name)
    setattr(place, name, answer)
    try:
        yield
    finally:
        # not where somebody else has replaced it meanwhile
        if getattr(place, name) is answer:
            setattr(place, name, asked)
