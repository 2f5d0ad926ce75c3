# SPDX-License-Identifier: MIT
"""Files that are there completely or not at all, whatever fails, and brought to disk before they get their names."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ..errors import FtnPytorchError


def part_name(name: str, purpose: str = "") -> str:
    """Name under which a file is written before it gets its own; its ending may follow, for who needs that."""
    return f".{name}.{os.getpid()}~{purpose}.part" if purpose else f".{name}.{os.getpid()}.part"


def remove_parts(folder: str, name: str) -> None:
    """Remove what killed writers of ``name``, a regular expression, have left. The caller holds the lock of it."""
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            if re.fullmatch(rf"\.({name})\.\d+(~.*)?\.part(\.\w+)?", entry):
                os.unlink(os.path.join(folder, entry))


def abandoned_name(path: str) -> str:
    """Name for a file of a run that was given up, which nothing has yet: ``.abandoned``, ``.abandoned.2``, ..."""
    aside, number = f"{path}.abandoned", 2
    while os.path.exists(aside):
        aside, number = f"{path}.abandoned.{number}", number + 1
    return aside


@contextlib.contextmanager
def replaced(path: str, check: Callable[[str], None] = lambda part: None) -> Iterator[BinaryIO]:
    """A stream for a file beside ``path`` that is brought to disk in the end, and only then gets its name.

    ``check`` is given the name of the complete file before that, and raises if it may not get its own.

    Whatever fails, also a kill at any moment, the old file of that name stays whole. FILE if the place cannot be
    written. The caller holds the lock of the path. ``src/base/replaced_file.cpp`` does the same on the direct path.
    """
    folder, name = os.path.split(os.path.abspath(path))
    part = os.path.join(folder, part_name(name))
    try:
        mode = _mode_of_replaced(path)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as raw:
                if mode is not None:
                    os.fchmod(descriptor, mode)
                yield raw
                raw.flush()
                os.fsync(descriptor)
            check(part)
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        sync_folder(folder)
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{path} cannot be written: {_reason(failure, folder)}") from failure


@contextlib.contextmanager
def completed(path: str) -> Iterator[str]:
    """A name beside ``path``, of the same ending, under which the body writes a file that gets its name in the end.

    For what takes names and no streams. FILE if the place cannot be written. The caller holds the lock of the path.
    """
    folder, name = os.path.split(os.path.abspath(path))
    part = os.path.join(folder, part_name(name) + os.path.splitext(name)[1])
    try:
        mode = _mode_of_replaced(path)
        yield part
        with open(part, "rb+") as written:
            if mode is not None:
                os.fchmod(written.fileno(), mode)
            os.fsync(written.fileno())
        os.replace(part, path)
        sync_folder(folder)
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{path} cannot be written: {_reason(failure, folder)}") from failure
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def require_place(path: str) -> None:
    """FILE if no file can be written there: asked before what takes long to make."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        _mode_of_replaced(path)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES if os.path.isdir(folder) else errno.ENOENT, "the folder is protected")
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{path} cannot be written: {_reason(failure, folder)}") from failure


def to_write(named: str | None, source: str, ending: str) -> str:
    """The file that a command writes: what its user has named, or the stem of ``source`` here, with this ending.

    FILE if it cannot be there. One that exists, such as what a script reads its parameters from, must be named.
    """
    path = os.path.abspath(named or f"{os.path.splitext(os.path.basename(source))[0]}.{ending}")
    require_place(path)
    if named is None and os.path.lexists(path):
        raise FtnPytorchError("FILE", f"{path} is there already: name the file to write, or to replace, with --output")
    return path


def _mode_of_replaced(path: str) -> int | None:
    """Permissions of the file that is to be replaced, which its successor keeps; None where the umask decides."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file in it")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    if path.endswith(".py"):
        raise OSError(errno.EEXIST, "there is a script; name another file")
    if not os.access(path, os.W_OK):
        # A rename would replace it all the same.
        raise PermissionError(errno.EACCES, "there is a file that is protected against writing")
    return stat.S_IMODE(found.st_mode)


def _reason(failure: OSError, folder: str) -> str:
    if isinstance(failure, FileNotFoundError) and not os.path.isdir(folder):
        return f"there is no folder {folder}"
    return failure.strerror or str(failure)


def sync_folder(folder: str) -> None:
    """Bring names to disk: a rename is lost with the power otherwise. Some network file systems have no such thing."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as failure:
        if failure.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
