# SPDX-License-Identifier: MIT
"""A checkpoint that all ranks of a communicator write together: few files, and on all ranks or on none.

The state of a rank that keeps nothing of its own but random states and its config goes to the lowest of such ranks on
its node, which writes it into its own file. Other ranks write a file each. So 79 nodes of 128 ranks write 79 files.
Which ranks do so is decided anew for each checkpoint, from what all ranks tell.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import FtnPytorchError, describe
from ..ranks import common_warnings, equality
from ..ranks.communicator import Communicator
from ..script.conventions import SHARED
from ..system import fair_lock, process, trial
from ..values import is_tensor, plain
from ..values.encoding import LABEL, TAG
from . import file, folder
from .base import SHARED_KEY, Checkpoint, Encoded, is_of
from .content import texts_in

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


def write(checkpoint: Any, ours: Communicator, path: str, keep: int, step: int | None, listed: list[str]) -> str:
    """As ``write`` of a ``ScriptCheckpoint``, on all ranks, which must all call it.

    The path of the file with the state of this rank. The failure of a rank is one of all, and then nothing new stays.
    ARGUMENT for other steps on other ranks. ``listed``: names of what must be the same on all ranks.
    """
    session = checkpoint._session
    own = session.resolved(path)
    if trial.is_on():
        return own
    with on_all(ours, PURPOSE, "cannot write its part", own, path) as turn, fair_lock.lock():
        encoded = checkpoint._encoded(own)
        trees = encoded[1]["objects"]
        checkpoint.require_kept(listed, trees)
        descriptions = _descriptions({name: tree for name, tree in trees.items() if is_of(name, listed)}, encoded[2])
        following = session.next_step(own) if step is None else step
        is_bare = all(is_of(name, listed) for name in trees)
        told = [equality.short(descriptions), socket.gethostname(), is_bare, plain(step), following]
        turn.value = [*told, os.urandom(8).hex()]
    digests, nodes, bare, steps, proposals, marks = zip(*turn.everywhere)
    _refuse_different(ours, digests, descriptions, checkpoint._script)
    if len(set(steps)) > 1:
        different = ", ".join(f"{each} on rank {steps.index(each)}" for each in dict.fromkeys(steps))
        raise FtnPytorchError("ARGUMENT", f"{PURPOSE}: the ranks write different steps: {different}")
    # Ranks that wrote nothing before have another one that follows.
    step = max(proposals)
    writers = writers_of(nodes, bare)
    more = {MARK: marks[0], SHARED_KEY: sorted(listed)}
    encoded = _without(encoded, listed) if ours.rank else encoded
    place = _write_files(checkpoint, ours, path, keep, step, encoded, writers, more)
    with fair_lock.lock():
        if writers[ours.rank] == ours.rank:
            session.done(os.path.dirname(place), keep, step)
        else:
            session.done_elsewhere(own, keep, step)
    return place


def _without(encoded: Encoded, listed: list[str]) -> Encoded:
    """What is left of the state without that which the file of rank 0 holds for all."""
    encoder, state, arrays = encoded
    state = {**state, "objects": {name: tree for name, tree in state["objects"].items() if not is_of(name, listed)}}
    return encoder, state, {name: arrays[name] for name in dict.fromkeys(texts_in(state, "at"))}


def require_apart(trees: Mapping[str, Any], listed: list[str], script: str) -> None:
    """SCRIPT if something that a call has made is in what is shared, and in what is not: these are in two files."""
    found: dict[str, str] = {}
    for name, tree in trees.items():
        labels = [label for label in texts_in(tree, LABEL) if label.startswith("#")]
        for made in (*texts_in(tree, "at"), *labels):
            other = found.setdefault(made, name)
            if is_of(other, listed) != is_of(name, listed):
                inside, outside = (other, name) if is_of(other, listed) else (name, other)
                raise FtnPytorchError(
                    "SCRIPT",
                    f"{script}: {SHARED} names {inside}, and does not name {outside}, which leads to the same object "
                    "or to the same memory, made after the load. Name both, or let one of them have a copy",
                )


def _descriptions(trees: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, str]:
    """What trees are that must be the same on all ranks: texts, and digests of their arrays."""
    labels: dict[str, str] = {}
    mine = {name: json.dumps(_comparable(tree, labels)) for name, tree in trees.items()}
    return {**mine, **{place: _digest(arrays[place]) for place in texts_in(list(trees.values()), "at")}}


def _refuse_different(ours: Communicator, digests: Sequence[str], mine: Mapping[str, str], script: str) -> None:
    """FORMAT on all ranks if what a restart takes from rank 0 is not the same on all; see ``equality``."""
    equality.refuse_different(
        digests,
        mine,
        lambda text: ours.gather(text, purpose=PURPOSE),
        f"{script}: {SHARED} names what is not the same on all ranks",
        "Nothing is written, since a restart would give all ranks what rank 0 has. Begin with the same values, and "
        f"change the network by average_gradients and the same optimizer only; or leave it out of {SHARED}",
    )


def _comparable(tree: Any, labels: dict[str, str]) -> Any:
    """Each rank may have a GPU of its own, and other objects with labels beside what is shared."""
    if isinstance(tree, list):
        return [_comparable(each, labels) for each in tree]
    if not isinstance(tree, dict):
        return tree
    left_out = "device" if tree.get(TAG) == "tensor" else None
    found = {key: _comparable(each, labels) for key, each in tree.items() if key != left_out}
    if TAG in tree and str(tree.get(LABEL)).startswith("#"):
        found[LABEL] = labels.setdefault(tree[LABEL], f"#{len(labels) + 1}")
    return found


def _digest(array: Any) -> str:
    if is_tensor(array):
        return equality.digest(array)
    return f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"


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
    more: Mapping[str, Any],
) -> str:
    """The path of the file with the state of this rank, once all files are there; a failure of one rank is of all.

    ``more``: what the description of each has beside that of a single file.
    """
    session, writer = checkpoint._session, writers[ours.rank]
    own = session.resolved(path)
    place = os.path.join(os.path.abspath(path.replace("%r", str(writer))), folder.name_of(step))
    part, failure, is_written = b"", None, False
    try:
        with on_all(ours, PURPOSE, "has not written its file, so there is no checkpoint of this step", own, path):
            try:
                if writer != ours.rank:
                    part = _part(checkpoint, step, encoded, more)
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
                    held = {**more, PARTS: list(map(int, parts))}
                    file.write(place, *checkpoint._content_of(step, encoded, held, parts), read=checkpoint._check)
                    is_written = True
    except Exception:
        if is_written:
            with contextlib.suppress(OSError):
                os.unlink(place)
        raise
    return place


def _part(checkpoint: Checkpoint, step: int, encoded: Encoded, more: Mapping[str, Any]) -> bytes:
    """The file that this rank would write."""
    stream = io.BytesIO()
    file.write_into(stream, *checkpoint._content_of(step, encoded, more))
    return stream.getvalue()


def _collected(ours: Communicator, writers: Sequence[int], part: bytes) -> dict[str, Any]:
    """What other ranks have sent to this one, by rank."""
    if all(writer == rank for rank, writer in enumerate(writers)):
        return {}
    senders = [rank for rank, writer in enumerate(writers) if writer == ours.rank]
    received = ours.collect(part, writers[ours.rank], purpose=PURPOSE)
    return {str(rank): data for rank, data in zip(senders, received) if data}
