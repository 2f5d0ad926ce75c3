# SPDX-License-Identifier: MIT
"""A folder of checkpoints: names that sort by step, which one a restart takes, and which ones are kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from ..errors import FtnPytorchError
from ..host import files, process, trial
from . import file
from .lock import Lock

_NAME = re.compile(r"checkpoint-(\d+)\.ckpt")
_LOCK = ".lock"


class Entry(NamedTuple):
    """One checkpoint of a folder."""

    step: int
    path: str


def name_of(step: int) -> str:
    """File name of a step."""
    return f"checkpoint-{step:012d}.ckpt"


def listed(folder: str) -> list[Entry]:
    """Checkpoints of a folder, latest step first; FILE if it cannot be read."""
    try:
        names = os.listdir(folder)
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{folder} cannot be read: {failure.strerror}") from failure
    matches = [match for match in map(_NAME.fullmatch, names) if match]
    return sorted((Entry(int(match[1]), os.path.join(folder, match[0])) for match in matches), reverse=True)


def candidates(folder: str, step: int | None) -> list[Entry]:
    """Checkpoints that a restart may take, best first; NO_CHECKPOINT if there are none."""
    there = listed(folder)
    if not there:
        raise FtnPytorchError("NO_CHECKPOINT", f"the folder {folder} holds no checkpoint")
    wanted = there if step is None else [entry for entry in there if entry.step <= step]
    if step is None or (wanted and wanted[0].step == step):
        return wanted
    steps = ", ".join(str(entry.step) for entry in there[:10])
    raise FtnPytorchError("NO_CHECKPOINT", f"the folder {folder} holds no checkpoint of step {step}, but of {steps}")


def prepare(place: str) -> None:
    """Make the folder that a place lies in, which a restart asks for at the start of a run: a warning if it cannot.

    The first checkpoint would tell it after hours. A name with an extension is that of a file, and ``save`` makes no
    folders.
    """
    if os.path.splitext(place)[1] or trial.is_on():
        return
    parent = os.path.dirname(place)
    try:
        os.makedirs(parent, exist_ok=True)
    except OSError as failure:
        process.warn(f"{_not_made(parent, failure)}: nothing can be written to {place}")


def _not_made(folder: str, failure: OSError) -> str:
    """The folder that is in the way, which may be one of those above."""
    there = folder
    while not os.path.exists(there):
        there = os.path.dirname(there)
    return f"the folder {folder} cannot be made in {there}: {failure.strerror}"


class Session:
    """What one owner, such as a loaded module, does with folders. It holds their locks as long as it lives."""

    def __init__(self) -> None:
        self._locks: dict[str, Lock] = {}
        self._reached: dict[str, int] = {}

    def went_on_from(self, folder: str, step: int) -> None:
        """A restart took that step; later ones are of a run that was given up."""
        self._reached[folder] = step

    def write(self, folder: str, keep: int, step: int | None, write_file: Callable[[str, int], None]) -> str:
        """Write one checkpoint and remove the oldest beyond ``keep``; ``write_file`` gets path and step.

        The one just written is always among those that stay. ARGUMENT if it would not be the latest of the folder,
        except for later ones of a run that was given up: they get the ending ``.abandoned``
        (``.abandoned.2``, ... where that is taken), and stay.
        """
        if keep < 1:
            raise FtnPytorchError("ARGUMENT", f"keep is {keep}, it must be at least 1")
        if step is not None and step < 0:
            raise FtnPytorchError("ARGUMENT", f"step is {step}, it must not be negative")
        self._lock(folder)
        if self._locks[folder].is_held():
            file.remove_parts(folder, _NAME.pattern)
        there = listed(folder)
        reached = self._reached.get(folder)
        if step is None:
            step = 1 + (reached if reached is not None else there[0].step if there else 0)
        # After a restart also those up to this step: other ranks may not have them.
        kept = step if reached is None else min(step, reached)
        self._set_aside([entry for entry in there if entry.step > kept], step, reached)
        path = os.path.join(folder, name_of(step))
        write_file(path, step)
        self._reached[folder] = step
        for entry in listed(folder)[keep:]:
            _remove(entry.path)
        return path

    def _lock(self, folder: str) -> None:
        held = self._locks.get(folder)
        if held is not None and held.is_held():
            return
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise FtnPytorchError("FILE", f"{folder} is a file; checkpoint() needs a folder")
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as failure:
            raise FtnPytorchError("FILE", _not_made(folder, failure)) from failure
        self._locks[folder] = Lock(os.path.join(folder, _LOCK), f"the folder {folder}")

    @staticmethod
    def _set_aside(later: list[Entry], step: int, reached: int | None) -> None:
        """Done before the new one is written: a restart must never go on with a run that was given up."""
        for entry in later:
            if reached is None or entry.step <= reached:
                raise FtnPytorchError(
                    "ARGUMENT",
                    f"{entry.path} is later than step {step}, and the next restart would take it: use another folder, "
                    "or restore from this one before going on",
                )
        for entry in later:
            try:
                os.replace(entry.path, files.abandoned_name(entry.path))
            except OSError as failure:
                text = f"{entry.path} cannot be renamed, and is of a run that was given up: {failure.strerror}"
                raise FtnPytorchError("FILE", text) from failure


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as failure:
        process.warn(f"{path} is not needed any more, and cannot be removed: {failure.strerror}")
