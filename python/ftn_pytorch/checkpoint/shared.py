# SPDX-License-Identifier: MIT
"""Checkpoints of ranks that train one network: what is the same on all is written once, and all restore one step.

``ftn_pytorch_shared = ["net", "optimizer"]`` in a script names what is the same on all ranks of its communicator. With
``%r`` in the name of a folder the file of rank 0 holds it, and the files of the others hold the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import FtnPytorchError
from ..host import fair_lock, process
from ..ranks import equality
from ..ranks.communicator import Communicator
from ..script.conventions import RESTORE, SAVE, SHARED
from ..values import is_tensor
from ..values.encoding import TAG, Unstorable
from . import file, folder
from .base import SHARED_KEY as KEY
from .base import Checkpoint
from .capture import Collector

_PURPOSE = "restore(folder with %r)"


class RanksCheckpoint(Checkpoint):
    """A checkpoint that ranks may write and restore together."""

    # Whose ranks these are, set for scripts that were loaded with it.
    _communicator: Communicator | None = None

    def restore(self, path: str, *, step: int | None = None, fallback: bool = False) -> int | None:
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


def require_same(ours: Communicator, objects: Mapping[str, Any], encoder: Collector, script: str) -> None:
    """FORMAT on all ranks if these objects, which a restart takes from rank 0, are not the same on all.

    All ranks of the communicator must call this. Digests are exchanged, 64 bytes for each rank as long as they agree.
    """
    mine: dict[str, str] = {}
    for name, value in objects.items():
        before = len(encoder.arrays)
        try:
            mine[name] = json.dumps(_without_devices(encoder.encode(value, name)))
        except Unstorable as failure:  # the write that comes next fails with it
            mine[name] = str(failure)
        mine.update({place: _digest(encoder.arrays[place]) for place in list(encoder.arrays)[before:]})
    equality.compare(
        mine,
        lambda text: ours.gather(text, purpose="checkpoint(folder with %r)"),
        f"{script}: {SHARED} names what is not the same on all ranks",
        "Nothing is written, since a restart would give all ranks what rank 0 has. Begin with the same numbers, and "
        f"change the network by average_gradients and the same optimizer only; or leave it out of {SHARED}",
    )


def _without_devices(tree: Any) -> Any:
    """Each rank may have a GPU of its own."""
    if isinstance(tree, list):
        return [_without_devices(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    left_out = "device" if tree.get(TAG) == "tensor" else None
    return {key: _without_devices(each) for key, each in tree.items() if key != left_out}


def _digest(array: Any) -> str:
    if is_tensor(array):
        return equality.digest(array)
    return f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"


def restore(checkpoint: Checkpoint, ours: Communicator, path: str, step: int | None, fallback: bool) -> folder.Entry:
    """Put back the checkpoint of a folder with ``%r`` that all ranks take.

    All ranks of the communicator must call this. A step is taken if all ranks have it that are there now and were there
    when it was written: others may have been killed before they wrote theirs. Ranks that were not there then get
    what is shared.
    """
    own, first = file.resolve(path), file.resolve(path.replace("%r", "0"))
    entries, written_by = _agreed(ours, own, first, step)

    def read(entry: folder.Entry) -> tuple[Any, Any]:
        return _read_on_all(checkpoint, ours, entry, os.path.join(first, folder.name_of(entry.step)), written_by)

    entry, (content, shared) = checkpoint._read_newest(entries, own, fallback, read)
    if ours.rank == 0:
        _warn_of_other_number(content, own, written_by[entry.step], ours.size)
    only = None if ours.rank < written_by[entry.step] else frozenset(shared[0].get(KEY, ()))
    failure: FtnPytorchError | None = None
    try:
        # Not while it waits for other ranks: one of them may wait for a step that a thread makes here with this lock.
        with fair_lock.lock():
            checkpoint._apply(content, entry.path, shared, only)
    except FtnPytorchError as found:
        failure = found
    _require_all(ours, failure, "has restored nothing, but this one has")
    return entry


def _agreed(ours: Communicator, own: str, first: str, step: int | None) -> tuple[list[folder.Entry], dict[int, int]]:
    """Checkpoints that this rank may take together with the others, latest first, and how many ranks wrote them."""
    there = folder.listed(own) if os.path.isdir(own) else []
    mine = {entry.step: (file.description(entry.path) or {}).get("ranks") for entry in there}
    steps = [{int(key): ranks for key, ranks in json.loads(text).items()} for text in _gather(ours, mine)]
    written_by = {}
    for each in sorted(set().union(*steps), reverse=True):
        # A damaged file does not tell; those of the other ranks do.
        ranks = next((found[each] for found in steps if found.get(each)), ours.size)
        if all(each in found for found in steps[:ranks]):
            written_by[each] = ranks
    if not any(steps):
        folder.prepare(own)
        raise FtnPytorchError("NO_CHECKPOINT", f"{own} holds no checkpoint, nor do the folders of the other ranks")
    allowed = [each for each in written_by if step is None or each <= step]
    if not allowed or (step is not None and allowed[0] != step):
        wanted = "no step that all ranks have" if step is None else f"no step {step} that all ranks have"
        listed = "; ".join(
            f"rank {rank}: {', '.join(map(str, sorted(found, reverse=True)[:5])) or 'none'}"
            for rank, found in enumerate(steps[:10])
        )
        raise FtnPytorchError("NO_CHECKPOINT", f"{own}: there is {wanted}. Steps of {listed}")
    places = {each: own if ours.rank < written_by[each] else first for each in allowed}
    return [folder.Entry(each, os.path.join(places[each], folder.name_of(each))) for each in allowed], written_by


def _read_on_all(
    checkpoint: Checkpoint, ours: Communicator, entry: folder.Entry, first: str, written_by: Mapping[int, int]
) -> tuple[Any, Any]:
    """Content of the file of this rank, and of that of rank 0; the failure of any rank is one of all."""
    failure: FtnPytorchError | None = None
    content = shared = None
    try:
        content = checkpoint._read(entry.path)
        shared = content if entry.path == first else None
        if shared is None and content[0].get(KEY):
            shared = checkpoint._read(first)
        if ours.size > written_by[entry.step] and not content[0].get(KEY):
            raise FtnPytorchError(
                "FORMAT",
                f"{entry.path} was written by {written_by[entry.step]} ranks, and there are {ours.size}: the new ones "
                f"would begin with a network of their own. Say in the script what is the same on all ranks, "
                f'{SHARED} = ["net"], before it is written',
            )
    except FtnPytorchError as found:
        failure = found
    _require_all(ours, failure, "cannot read its part")
    return content, shared


def _require_all(ours: Communicator, failure: FtnPytorchError | None, what: str) -> None:
    """Raise the failure of this rank, or else that of another one: none may go on alone."""
    outcomes = [json.loads(text) for text in _gather(ours, [failure.status, failure.text] if failure else None)]
    if failure is not None:
        raise failure
    for rank, outcome in enumerate(outcomes):
        if outcome is not None:
            raise FtnPytorchError(outcome[0], f"rank {rank} {what}: {outcome[1]}")


def _gather(ours: Communicator, value: Any) -> list[str]:
    return ours.gather(json.dumps(value), purpose=_PURPOSE)


def _warn_of_other_number(content: Any, place: str, before: int, now: int) -> None:
    about, state = content[0], content[1]
    if before == now:
        return
    shared = about.get(KEY, [])
    objects = state["objects"] if isinstance(state, dict) else {}
    rest = ", ".join([*sorted(set(objects) - set(shared)), "random states"])
    first, last = min(before, now), max(before, now) - 1
    one = first == last
    others = f"rank {first}" if one else f"ranks {first} to {last}"
    if now < before:
        what = f"{rest} of {others} are not used"
    elif one:
        what = f"{others} gets {', '.join(shared)} of rank 0, and begins with {rest} as the script made them"
    else:
        what = f"{others} get {', '.join(shared)} of rank 0, and begin with {rest} as the script made them"
    process.warn_once(f"{place} was written by {before} ranks, and there are {now}: {what}")
