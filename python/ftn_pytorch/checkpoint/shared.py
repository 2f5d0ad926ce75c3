# SPDX-License-Identifier: MIT
"""Checkpoints of ranks that train one network: what is the same on all is written once, and all restore one step.

``ftn_pytorch_shared = ["net", "optimizer"]`` in a script names what is the same on all ranks of its communicator. With
``%r`` in the name of a folder the file of rank 0 holds it, and the files of the others hold the rest; see ``together``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import FtnPytorchError
from ..ranks.communicator import Communicator
from ..script.conventions import RESTORE, SAVE, SHARED
from ..system import fair_lock, process
from . import content as contents
from . import file, folder, together
from .base import SHARED_KEY as KEY
from .base import Checkpoint, is_of

_PURPOSE = "restore(folder with %r)"


class RanksCheckpoint(Checkpoint):
    """A checkpoint that ranks may write and restore together."""

    # Whose ranks these are, set for scripts that were loaded with it.
    _communicator: Communicator | None = None

    def restore(self, path: str | os.PathLike[str], *, step: int | None = None, fallback: bool = False) -> int | None:
        path = os.fspath(path)
        if self._communicator is None or "%r" not in path or os.path.isfile(path.replace("%r", "0")):
            return super().restore(path, step=step, fallback=fallback)
        entry = restore(self, self._communicator, path, step, fallback)
        self._session.went_on_from(file.resolve(path), entry.step)
        return entry.step


def declared(names: Mapping[str, Any], script: str) -> list[str]:
    """What a script says is the same on all ranks; SCRIPT if that cannot be so."""
    listed = names.get(SHARED)
    if listed is None:
        return []
    # Objects that the program makes for the script (torch_optimizer.1) come later.
    require_names(listed, script, SHARED, "net", lambda name: name in names or "." in name)
    if SAVE in names or RESTORE in names:
        raise FtnPytorchError(
            "SCRIPT", f"{script} has {SHARED} and {SAVE}, which decides by itself what a file holds: leave out one"
        )
    return list(listed)


def require_names(listed: Any, script: str, what: str, example: str, is_known: Callable[[str], bool]) -> None:
    """SCRIPT if a declaration of a script is no list of names that it has."""
    if isinstance(listed, str) or not all(isinstance(name, str) for name in listed):
        raise FtnPytorchError("SCRIPT", f'{script}: {what} is {listed!r}, it must be a list of names, ["{example}"]')
    unknown = [name for name in listed if not is_known(name)]
    if unknown:
        raise FtnPytorchError("SCRIPT", f"{script}: {what} names {', '.join(unknown)}, which it does not define")


class _Step(NamedTuple):
    """Where a checkpoint is that all ranks may take."""

    ranks: int
    """How many wrote it."""
    holders: Sequence[int]
    """For each of these, as far as they are there now, the rank whose file has its state."""


def restore(checkpoint: Checkpoint, ours: Communicator, path: str, step: int | None, fallback: bool) -> folder.Entry:
    """Put back the checkpoint of a folder with ``%r`` that all ranks take.

    All ranks of the communicator must call this. A step is taken if there is the state of all ranks that are there now
    and were there when it was written: others may have been killed before they wrote theirs. Ranks that were not there
    then get what is shared.
    """
    steps = _agreed(ours, path, step)
    entries = [folder.Entry(each, _place(path, found, each, ours.rank)) for each, found in steps.items()]

    def read(entry: folder.Entry) -> Any:
        return _read_on_all(checkpoint, ours, entry, path, steps[entry.step])

    with process.warnings_held() as warnings:
        entry, content = checkpoint._read_newest(entries, file.resolve(path), fallback, read)
    if ours.rank == 0:
        _warn_of_other_number(content, file.resolve(path), steps[entry.step].ranks, ours.size)
    else:
        warnings.clear()  # rank 0 tells what was passed over
    only = None if ours.rank < steps[entry.step].ranks else frozenset(content[0][KEY])
    what = "has restored nothing, but this one has"
    # The lock is not held while it waits for other ranks: one may wait for a step that a thread makes here with it.
    with together.on_all(ours, _PURPOSE, what, os.path.dirname(entry.path), path, warnings), fair_lock.lock():
        checkpoint._apply(content, entry.path, only)
    return entry


def _place(path: str, found: _Step, step: int, rank: int) -> str:
    holder = found.holders[rank] if rank < found.ranks else 0
    return os.path.join(os.path.realpath(path.replace("%r", str(holder))), folder.name_of(step))


def _agreed(ours: Communicator, path: str, step: int | None) -> dict[int, _Step]:
    """Checkpoints that this rank may take together with the others, latest first."""
    own = file.resolve(path)
    with together.on_all(ours, _PURPOSE, "cannot say what it has") as turn:
        there = folder.listed(own) if os.path.isdir(own) else []
        turn.value = {entry.step: _described(entry.path) for entry in there}
    files = [{int(key): about for key, about in each.items()} for each in turn.everywhere]
    complete: dict[int, _Step] = {}
    for each in sorted(set().union(*files), reverse=True):
        found = _found(each, files)
        if found is not None:
            complete[each] = found
    if not any(files):
        with together.on_all(ours, _PURPOSE, "cannot make its folder", own, path):
            folder.prepare(own)
        raise FtnPytorchError("NO_CHECKPOINT", f"{own} holds no checkpoint, nor do the folders of the other ranks")
    allowed = [each for each in complete if step is None or each <= step]
    if not allowed or (step is not None and allowed[0] != step):
        wanted = "no step that all ranks have" if step is None else f"no step {step} that all ranks have"
        listed = "; ".join(
            f"rank {rank}: {', '.join(map(str, _steps_of(rank, files)[:5])) or 'none'}"
            for rank in range(min(ours.size, 10))
        )
        raise FtnPytorchError("NO_CHECKPOINT", f"{own}: there is {wanted}. Steps of {listed}")
    return {each: complete[each] for each in allowed}


def _described(path: str) -> list[Any] | None:
    """How many ranks wrote it, what its files have alike, whose parts it has; None for a damaged file."""
    about = file.description(path)
    if about is None:
        return None
    return [about.get("ranks"), about.get(together.MARK), about.get(together.PARTS) or []]


def _found(step: int, files: Sequence[Mapping[int, Any]]) -> _Step | None:
    """Where a step is; None if the state of a rank is missing. ``files``: by rank, what its files say, by step.

    A damaged file counts as one that has what nothing else has: who reads it is told.
    """
    known = {rank: there[step] for rank, there in enumerate(files) if there.get(step)}
    first: list[Any] = next(iter(known.values()), [None, None, []])
    ranks: int = first[0] or len(files)
    holders: list[int | None] = [None for _ in files[:ranks]]
    for rank, (_, mark, parts) in known.items():
        if mark == first[1]:
            for each in (rank, *parts):
                if 0 <= each < len(holders):
                    holders[each] = rank
    damaged = -1
    for rank, holder in enumerate(holders):
        if step in files[rank] and files[rank][step] is None:
            damaged = rank
        if holder is None:
            holders[rank] = damaged if damaged >= 0 else None
    return None if None in holders else _Step(ranks, [each for each in holders if each is not None])


def _steps_of(rank: int, files: Sequence[Mapping[int, Any]]) -> list[int]:
    """Steps of which there is a file with the state of a rank, latest first."""
    held = {step for there in files[:rank] for step, about in there.items() if about and rank in about[2]}
    return sorted({*files[rank], *held}, reverse=True)


def _read_on_all(checkpoint: Checkpoint, ours: Communicator, entry: folder.Entry, path: str, found: _Step) -> Any:
    """Content that is of this rank, with what the file of rank 0 holds for all; the failure of any rank is of all."""
    first = _place(path, _Step(0, ()), entry.step, ours.rank)
    with together.on_all(ours, _PURPOSE, "cannot read its part"):
        content = of_first = checkpoint._read(entry.path)
        if ours.rank < found.ranks and found.holders[ours.rank] != ours.rank:
            content = contents.of_rank(content, ours.rank, entry.path)
        if names := content[0].get(KEY):
            of_first = of_first if entry.path == first else checkpoint._read(first)
            with contents.understood(first):
                trees = {name: tree for name, tree in of_first[1]["objects"].items() if is_of(name, names)}
                content = contents.joined(content, trees, of_first[2])
        elif ours.size > found.ranks:
            raise FtnPytorchError(
                "FORMAT",
                f"{entry.path} was written by {found.ranks} ranks, and there are {ours.size}: the new ones "
                f"would begin with a network of their own. Say in the script what is the same on all ranks, "
                f'{SHARED} = ["net"], before it is written',
            )
    return content


def _warn_of_other_number(content: Any, place: str, before: int, now: int) -> None:
    about, state = content[0], content[1]
    if before == now:
        return
    shared = about.get(KEY, [])
    objects = state["objects"] if isinstance(state, dict) else {}
    rest = ", ".join([*sorted(name for name in objects if not is_of(name, shared)), "random states"])
    first, last = min(before, now), max(before, now) - 1
    others, ends = (f"rank {first}", "s") if first == last else (f"ranks {first} to {last}", "")
    if now < before:
        what = f"{rest} of {others} are not used"
    else:
        given = f"get{ends} {', '.join(shared)} of rank 0"
        what = f"{others} {given}, and begin{ends} with {rest} as the script made them"
    process.warn_once(f"{place} was written by {before} ranks, and there are {now}: {what}")
