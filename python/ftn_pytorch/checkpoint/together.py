# SPDX-License-Identifier: MIT
"""A checkpoint that all ranks of a communicator write together: few files, and on all ranks or on none.

The state of a rank that keeps nothing of its own but random states and its config goes to the lowest of such ranks on
its node, which writes it into its own file. Other ranks write a file each. So 79 nodes of 128 ranks write 79 files.
Which ranks do so is decided anew for each checkpoint, from what all ranks tell.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import FtnPytorchError, describe
from ..ranks import common_warnings, equality
from ..ranks.communicator import Communicator
from ..system import fair_lock, process, trial
from ..values import plain
from . import file, folder
from .base import is_of

if TYPE_CHECKING:
    from .base import Checkpoint, Encoded

PURPOSE = "checkpoint(folder with %r)"
MARK, PARTS = "together", "parts"
"""In the description of a file: what all files of one checkpoint have alike, and the other ranks whose state it has."""


@dataclasses.dataclass
class Turn:
    """What a rank tells the others at the end of ``on_all``, which JSON can hold, and what all have told."""

    value: Any = None
    everywhere: Sequence[Any] = ()


@contextlib.contextmanager
def on_all(
    ours: Communicator, purpose: str, what: str, own: str = "", path: str = "", warnings: Sequence[str] = ()
) -> Iterator[Turn]:
    """A block that all ranks run: none goes on alone. Where it fails on one, others raise that this rank ``what``.

    Warnings come once, after these others, from rank 0; ``own``, a folder of one rank, is ``path`` in them, in which
    ``%r`` is the rank.
    """
    turn, failure = Turn(), None
    with process.warnings_held() as held:
        try:
            yield turn
        except Exception as found:
            failure = found
    told = [*warnings, *(text.replace(own, os.path.realpath(path)) if own else text for text in held)]
    mine = json.dumps([None if failure is None else describe(failure, ""), told, turn.value])
    everywhere = [json.loads(text) for text in ours.gather(mine, purpose=purpose)]
    common_warnings.tell(ours.rank, [warned for _, warned, _ in everywhere])
    turn.everywhere = [value for _, _, value in everywhere]
    if failure is not None:
        raise failure
    for rank, (outcome, _, _) in enumerate(everywhere):
        if outcome is not None:
            raise FtnPytorchError(outcome[0], f"rank {rank} {what}: {outcome[1]}")


def write(
    checkpoint: Checkpoint,
    ours: Communicator,
    path: str,
    keep: int,
    step: int | None,
    described: Callable[[], dict[str, str]],
    refuse: Callable[[Sequence[str], Mapping[str, str]], None],
) -> str:
    """As ``Checkpoint.write`` on all ranks, which must all call it; the path of the file with the state of this one.

    The failure of a rank is one of all, and then nothing new stays. ARGUMENT for other steps on other ranks.
    ``described``: what must be the same on all ranks, by name. ``refuse``: raises if it is not, from the digests of all
    ranks and the descriptions of this one.
    """
    session = checkpoint._session
    own = session.resolved(path)
    if trial.is_on():
        return own
    with on_all(ours, PURPOSE, "cannot write its part", own, path) as turn, fair_lock.lock():
        descriptions = described()
        encoded = checkpoint._encoded(own)
        following = session.next_step(own) if step is None else step
        is_bare = all(is_of(name, checkpoint._shared) for name in encoded[1]["objects"])
        told = [equality.short(descriptions), socket.gethostname(), is_bare, plain(step), following]
        turn.value = [*told, os.urandom(8).hex()]
    digests, nodes, bare, steps, proposals, marks = zip(*turn.everywhere)
    refuse(digests, descriptions)
    if len(set(steps)) > 1:
        listed = ", ".join(f"{each} on rank {steps.index(each)}" for each in dict.fromkeys(steps))
        raise FtnPytorchError("ARGUMENT", f"{PURPOSE}: the ranks write different steps: {listed}")
    # Ranks that wrote nothing before have another one that follows.
    step = max(proposals)
    writers = writers_of(nodes, bare)
    place = _write_files(checkpoint, ours, path, keep, step, encoded, writers, marks[0])
    with fair_lock.lock():
        if writers[ours.rank] == ours.rank:
            session.done(os.path.dirname(place), keep, step)
        else:
            session.done_elsewhere(own, keep, step)
    return place


def writers_of(nodes: Sequence[str], is_bare: Sequence[bool]) -> list[int]:
    """The rank that writes the state of each rank."""
    lowest: dict[str, int] = {}
    return [lowest.setdefault(node, rank) if bare else rank for rank, (node, bare) in enumerate(zip(nodes, is_bare))]


def _write_files(
    checkpoint: Checkpoint,
    ours: Communicator,
    path: str,
    keep: int,
    step: int,
    encoded: Encoded,
    writers: Sequence[int],
    mark: str,
) -> str:
    """The path of the file with the state of this rank, once all files are there; a failure of one rank is of all."""
    session, writer = checkpoint._session, writers[ours.rank]
    own = session.resolved(path)
    place = os.path.join(os.path.abspath(path.replace("%r", str(writer))), folder.name_of(step))
    part, failure, is_written = b"", None, False
    try:
        with on_all(ours, PURPOSE, "has not written its file, so there is no checkpoint of this step", own, path):
            try:
                if writer != ours.rank:
                    part = _part(checkpoint, step, encoded, mark)
            except Exception as found:
                failure = found
            parts = _collected(ours, writers, part)
            if failure is not None:
                raise failure
            with fair_lock.lock():
                if writer != ours.rank:
                    session.place_elsewhere(own, keep, step)
                else:
                    place, _ = session.place(file.resolve(path), keep, step)
                    more = {MARK: mark, PARTS: list(map(int, parts))}
                    file.write(place, *checkpoint._content_of(step, encoded, more, parts), read=checkpoint._check)
                    is_written = True
    except Exception:
        if is_written:
            with contextlib.suppress(OSError):
                os.unlink(place)
        raise
    return place


def _part(checkpoint: Checkpoint, step: int, encoded: Encoded, mark: str) -> bytes:
    """The file that this rank would write."""
    stream = io.BytesIO()
    file.write_into(stream, *checkpoint._content_of(step, encoded, {MARK: mark}))
    return stream.getvalue()


def _collected(ours: Communicator, writers: Sequence[int], part: bytes) -> dict[str, Any]:
    """What other ranks have sent to this one, by rank."""
    if all(writer == rank for rank, writer in enumerate(writers)):
        return {}
    senders = [rank for rank, writer in enumerate(writers) if writer == ours.rank]
    received = ours.collect(part, writers[ours.rank], purpose=PURPOSE)
    return {str(rank): data for rank, data in zip(senders, received) if data}
