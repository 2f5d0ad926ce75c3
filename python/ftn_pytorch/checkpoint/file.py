# SPDX-License-Identifier: MIT
"""One checkpoint file: written so that it is there completely or not at all, and checked when it is read.

Layout: a zip archive (see ``archive``), a description in JSON, and a closing record of 72 bytes with the kind of the
file, the lengths of both and a SHA-256 digest over everything before it. A file that was cut off has no closing
record. Readers of zip archives look for their directory from the end and pass over what follows it, so ``torch.load``
and ``zipfile`` open such a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import socket
import struct
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from .._version import __version__
from ..errors import FtnPytorchError
from ..ranks import own_rank
from ..script import loading
from ..system import files, launcher
from ..system.file_lock import Lock
from ..values import loaded, plain

FORMAT = 3
"""What is written. Format 1, which held less of what a script writes to, is read as well."""
CHECKPOINT, RECORDING = 0, 1
"""Kinds of files. A saved recording is a checkpoint with tapes in its archive."""
# Ranks of several communicators may have the same number, but not in their job.
RANK_OF_JOB = "rank_of_job"
_TYPES = {"step": int, "archive": str, "rank": int, "ranks": int, "together": str}
_LISTS = {"left_out": str, "shared": str, "parts": int}
# Stands within the first bytes of every archive of ours, so that a file that was cut off is told from a foreign one.
MARK = "ftn_pytorch checkpoint"
_MAGIC = b"ftn_pytorch ckpt"
_CLOSING = struct.Struct("<16sIIQQ")
_DIGEST_SIZE = 32
_CHUNK = 1 << 20


class _Stream:
    """A file that is written once from front to back, and its digest. ``torch.save`` and ``zipfile`` write to it."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.digest = hashlib.sha256()
        self.length = 0
        self.failure: OSError | None = None

    def write(self, data: Any) -> int:
        with memoryview(data) as view:
            if self.failure is None:
                try:
                    self._raw.write(view)
                except OSError as failure:
                    # Told when all is written: torch hides an exception that comes from here behind one of its own.
                    self.failure = failure
            self.digest.update(view)
            self.length += view.nbytes
            return view.nbytes

    def tell(self) -> int:
        return self.length

    def flush(self) -> None:
        self._raw.flush()


def describe(step: int | None, kind: str) -> dict[str, Any]:
    """What a file says of itself. ``archive`` is the kind of its archive: how it must be read."""
    rank, size = own_rank.rank_and_size()
    versions = {name: getattr(loaded(name), "__version__", None) for name in ("numpy", "torch")}
    return {
        "step": plain(step),
        "archive": kind,
        "library": __version__,
        "python": platform.python_version(),
        **{name: None if version is None else str(version) for name, version in versions.items()},
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "host": socket.gethostname(),
        "rank": rank,
        "ranks": size,
        **owner(),
    }


def owner() -> dict[str, Any]:
    """Which rank of which job writes a file."""
    return {"job": launcher.job(), RANK_OF_JOB: launcher.launched_rank_and_size()[0]}


def owner_in_job() -> dict[str, Any]:
    """``owner``, for files of other kinds: outside of a job they tell nothing."""
    own = owner()
    return {} if own["job"] is None else own


def sign(archive: BinaryIO) -> None:
    """Have another zip archive, which is complete, tell its ``owner`` in a comment. Outside of a job it stays as it is.

    Readers pass over the comment. ``src/plugin/file_owner.cpp`` does the same.
    """
    if own := owner_in_job():
        comment = json.dumps(own).encode()
        archive.seek(-2, os.SEEK_END)
        archive.write(len(comment).to_bytes(2, "little") + comment)


def owner_in(path: str) -> Mapping[str, Any] | None:
    """The ``owner`` that a checkpoint, or another zip archive, tells; None where nothing does."""
    about = description(path)
    if about is not None:
        return about
    try:
        with zipfile.ZipFile(path) as archive:
            found = json.loads(archive.comment)
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
    return found if isinstance(found, dict) else None


def resolve(file: str | os.PathLike[str]) -> str:
    """Absolute path of a file or folder; ``%r`` in its name is the rank of this process, links are followed."""
    if not os.fspath(file).strip():
        raise FtnPytorchError("FILE", "the name of the checkpoint is empty")
    return os.path.realpath(own_rank.with_rank(file))


@contextlib.contextmanager
def locked(path: str, read: Callable[[str], Mapping[str, Any] | None] = owner_in) -> Iterator[None]:
    """Nobody else writes this file meanwhile, and what killed writers of it have left is gone; FILE.

    LOCKED if another process is writing it, or if another rank of this job has written it. Without flock there may be
    other writers, and what they have begun stays. ``read``: see ``refuse_other_rank``.
    """
    folder, name = os.path.split(path)
    lock = Lock(os.path.join(folder, f".{name}.lock"), path)
    try:
        if lock.is_held():
            files.remove_parts(folder, re.escape(name))
        refuse_other_rank(path, read)
        yield
    finally:
        lock.release()


def write(
    path: str,
    about: dict[str, Any],
    fill: Callable[[_Stream], None],
    kind: int = CHECKPOINT,
    read: Callable[[str], None] = lambda part: None,
) -> None:
    """Write a checkpoint as ``files.replaced`` does. ``fill`` writes the archive.

    ``read`` reads a file as a restart does, and raises if that cannot be done: then the older file of the name stays.
    """
    with files.replaced(path, lambda part: _read_back(part, path, read)) as raw:
        write_into(raw, about, fill, kind)


def _read_back(part: str, path: str, read: Callable[[str], None]) -> None:
    try:
        read(part)
    except FtnPytorchError as failure:
        found = failure.text.replace(part, "what was written")
        if failure.status in ("CORRUPT", "FILE"):
            text = f"{path} cannot be written: {found}. The disk gives back what it was not given: write elsewhere"
            raise FtnPytorchError("FILE", text) from failure
        if failure.status == "HOOK":
            raise FtnPytorchError("HOOK", f"{path} is not written: {found}") from failure
        text = f"{path} cannot be written, since no restart could read it: {found}. The older file stays"
        raise FtnPytorchError("RESULT_TYPE", text) from failure


def write_into(raw: BinaryIO, about: dict[str, Any], fill: Callable[[_Stream], None], kind: int = CHECKPOINT) -> None:
    """The same into a stream."""
    stream = _Stream(raw)
    fill(stream)
    if stream.failure is not None:
        raise stream.failure
    length = stream.length
    stream.write(json.dumps(about).encode())
    stream.write(_CLOSING.pack(_MAGIC, FORMAT, kind, length, stream.length - length))
    stream.write(stream.digest.digest())


def require_step(there: int | None, wanted: int | None, path: str) -> None:
    """NO_CHECKPOINT if a file is of another step than is wanted; ``there`` is None if it was saved without one."""
    if wanted is not None and wanted != there:
        held = "no step" if there is None else f"step {there}"
        raise FtnPytorchError("NO_CHECKPOINT", f"{path} holds {held}, and step {wanted} is asked for")


@contextlib.contextmanager
def opened(path: str) -> Iterator[tuple[dict[str, Any], BinaryIO]]:
    """Description and archive of a checkpoint whose digest is right.

    FILE if it cannot be read, CORRUPT if it is damaged or cut off, FORMAT if it is none or of a later format.
    """
    loading.find(path)
    try:
        with open(path, "rb") as raw:
            yield check(raw, path), raw
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{path} cannot be read: {failure.strerror or failure}") from failure


def description(path: str) -> dict[str, Any] | None:
    """What a file says of itself, without a look at the rest; None if that cannot be read."""
    try:
        with open(path, "rb") as raw:
            version, _, length, size = _closing(raw) or (0, 0, 0, 0)
            raw.seek(length)
            return _described(raw.read(size)) if 1 <= version <= FORMAT else None
    except (OSError, ValueError):
        return None


def refuse_other_rank(path: str, read: Callable[[str], Mapping[str, Any] | None] = owner_in) -> None:
    """Ranks that save one after the other do not meet at the lock, and the last one would win.

    ``read``: what tells the ``owner`` of a file, None where nothing does.
    """
    job = launcher.job()
    about = read(path) if job is not None else None
    if about is None or about.get("job") != job:
        return
    rank, writer = launcher.launched_rank_and_size()[0], about.get(RANK_OF_JOB, about.get("rank"))
    if writer != rank:
        raise FtnPytorchError(
            "LOCKED",
            f"{path} was written by rank {writer} of this job, and this is rank {rank}: give each rank a name of its "
            "own by writing %r for the rank, or write on one rank. %r is the rank in the communicator of load: ranks "
            "of another communicator need another name besides",
        )


def kind(path: str) -> int | None:
    """CHECKPOINT or RECORDING, told by the closing record alone; None for other files, and where it cannot be read."""
    try:
        with open(path, "rb") as raw:
            closing = _closing(raw)
    except OSError:
        return None
    if closing is None or not 1 <= closing[0] <= FORMAT or closing[1] not in (CHECKPOINT, RECORDING):
        return None
    return closing[1]


def _closing(raw: BinaryIO) -> tuple[int, int, int, int] | None:
    """Format, kind, length of the archive and of the description; None if the lengths are not those of the file."""
    end = raw.seek(0, os.SEEK_END)
    tail = _CLOSING.size + _DIGEST_SIZE
    raw.seek(max(0, end - tail))
    record = raw.read(_CLOSING.size)
    if end < tail or record[: len(_MAGIC)] != _MAGIC:
        return None
    _, version, of_kind, length, size = _CLOSING.unpack(record)
    return (version, of_kind, length, size) if length + size + tail == end else None


def archive_length(raw: BinaryIO) -> int:
    """Length of the archive at the beginning of an opened checkpoint."""
    closing = _closing(raw)
    return 0 if closing is None else closing[2]


def check(raw: BinaryIO, path: str) -> dict[str, Any]:
    """Description of a checkpoint in a stream, which stands at its beginning then. CORRUPT, FORMAT."""
    closing = _closing(raw)
    raw.seek(0)
    if closing is None:
        start = raw.read(_CHUNK)
        if MARK.encode() in start or _MAGIC in start:
            raise FtnPytorchError("CORRUPT", f"{path} is damaged: the end of it is missing or has been changed")
        raise FtnPytorchError("FORMAT", f"{path} is no checkpoint of ftn_pytorch; it {_looks_like(start)}")
    version, of_kind, length, size = closing
    digest, left = hashlib.sha256(), length + size + _CLOSING.size
    while left and (chunk := raw.read(min(left, _CHUNK))):
        digest.update(chunk)
        left -= len(chunk)
    if raw.read(_DIGEST_SIZE) != digest.digest():
        raise FtnPytorchError("CORRUPT", f"{path} is damaged: its content does not agree with its checksum")
    if not 1 <= version <= FORMAT:
        raise FtnPytorchError(
            "FORMAT", f"{path} has format {version} of checkpoints, this version of ftn_pytorch reads format {FORMAT}"
        )
    if of_kind not in (CHECKPOINT, RECORDING):
        raise FtnPytorchError("FORMAT", f"{path} is of kind {of_kind}, which this version of ftn_pytorch does not know")
    raw.seek(length)
    try:
        about = _described(raw.read(size))
    except (ValueError, RecursionError) as failure:
        raise FtnPytorchError("FORMAT", f"{path} has a description that no checkpoint has: {failure}") from failure
    raw.seek(0)
    return about


def _described(text: bytes) -> dict[str, Any]:
    """What a file says of itself; ValueError if it is not what ``describe`` writes."""
    about = json.loads(text)
    if not isinstance(about, dict):
        raise ValueError("it is no table")
    for name, kind in _TYPES.items():
        if about.get(name) is not None and type(about[name]) is not kind:
            raise ValueError(f"{name} is {about[name]!r}")
    for name, kind in _LISTS.items():
        value = about.get(name)
        if value is not None and not (isinstance(value, list) and all(type(each) is kind for each in value)):
            raise ValueError(f"{name} is {value!r}")
    return about


def _looks_like(start: bytes) -> str:
    if not start:
        return "is empty"
    if start[:2] == b"PK":
        return "is a zip archive, as torch.save and torch.jit.save write, or the beginning of one"
    return f"begins with {start[:8]!r}"
