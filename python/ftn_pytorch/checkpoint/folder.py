# SPDX-License-Identifier: MIT
"""A folder of checkpoints: names that sort by step, which one a restart takes, and which ones are kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from ..errors import FtnPytorchError, require_count
from ..system import files, process, trial
from ..system.file_lock import Lock
from . import file

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
        self._resolved: dict[tuple[str, str], str] = {}
        self._elsewhere: dict[str, set[int] | None] = {}
        """Of folders whose state is written into another one: steps there. None where there are no old files."""

    def resolved(self, path: str) -> str:
        """``file.resolve``, asked once for each name: for ranks that leave the file system alone."""
        key = (os.getcwd(), path)
        if key not in self._resolved:
            self._resolved[key] = file.resolve(path)
        return self._resolved[key]

    def went_on_from(self, folder: str, step: int) -> None:
        """A restart took that step; later ones are of a run that was given up."""
        self._reached[folder] = step

    def write(self, folder: str, keep: int, step: int | None, write_file: Callable[[str, int], None]) -> str:
        """Write one checkpoint and remove the oldest beyond ``keep``; ``write_file`` gets path and step.

        The one just written is always among those that stay. ARGUMENT if it would not be the latest of the folder,
        except for later ones of a run that was given up: they get the ending ``.abandoned``
        (``.abandoned.2``, ... where that is taken), and stay.
        """
        place, step = self.place(folder, keep, step)
        write_file(place, step)
        self.done(folder, keep, step)
        return place

    def next_step(self, folder: str) -> int:
        """The step that ``write`` would take without one."""
        reached = self._reached.get(folder)
        if reached is None:
            there = listed(folder) if os.path.isdir(folder) else []
            reached = there[0].step if there else 0
        return 1 + reached

    def place(self, folder: str, keep: int, step: int | None) -> tuple[str, int]:
        """Path and step of the file that comes next; the folder is locked, and what was given up is set aside."""
        _require(keep, step)
        self._lock(folder)
        if self._locks[folder].is_held():
            files.remove_parts(folder, _NAME.pattern)
        there = listed(folder)
        reached = self._reached.get(folder)
        if step is None:
            step = self.next_step(folder)
        # After a restart also those up to this step: other ranks may not have them.
        kept = step if reached is None else min(step, reached)
        self._set_aside([entry for entry in there if entry.step > kept], step, reached)
        return os.path.join(folder, name_of(step)), step

    def done(self, folder: str, keep: int, step: int) -> None:
        """The file of that step is written: remove the oldest."""
        self._reached[folder] = step
        for entry in listed(folder)[keep:]:
            _remove(entry.path)

    def place_elsewhere(self, folder: str, keep: int, step: int) -> None:
        """``place`` for a rank whose state another one writes: what its folder holds is of former runs, if it is there.

        Without such a folder, which is looked for once, nothing is done on the file system.
        """
        _require(keep, step)
        if folder not in self._elsewhere:
            self._elsewhere[folder] = set() if os.path.isdir(folder) and listed(folder) else None
        if self._elsewhere[folder] is not None:
            self.place(folder, keep, step)

    def done_elsewhere(self, folder: str, keep: int, step: int) -> None:
        """``done`` for such a rank: of its own files those go that would, if that of the step were one of them."""
        self._reached[folder] = step
        written = self._elsewhere.get(folder)
        if written is None:
            return
        written.add(step)
        there = listed(folder)
        newest = sorted(written | {entry.step for entry in there}, reverse=True)[:keep]
        for entry in there:
            if entry.step not in newest:
                _remove(entry.path)
        if not listed(folder):
            self._elsewhere[folder] = None

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


def _require(keep: int, step: int | None) -> None:
    require_count("keep", keep)
    if step is not None and step < 0:
        raise FtnPytorchError("ARGUMENT", f"step is {step}, it must not be negative")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as failure:
        process.warn(f"{path} is not needed any more, and cannot be removed: {failure.strerror}")
