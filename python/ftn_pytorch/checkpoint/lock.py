# SPDX-License-Identifier: MIT
"""One writer at a time: a lock file beside what is written, which names its owner.

The lock is ``flock``: it ends with its process, however that ends, so nothing stale is left that could block. On NFS
(Linux 2.6.12 and later) and on Lustre with the mount option ``flock`` it holds across nodes, with ``localflock`` or
``local_lock`` within a node only. Where a file system has no flock at all, the mere existence of the lock file is the
lock: one of a dead process of this node is removed, one of another node has to be removed by hand.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import time
import weakref
from typing import Any

from .. import process
from ..errors import FtnPytorchError

_UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOLCK)

# Descriptors of the locks that this process holds. A forked child, such as a worker of a data loader, would keep them
# alive beyond the death of its parent.
_held: set[int] = set()


def _forget_in_child() -> None:
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)


class Lock:
    """Held from construction until ``release``, the end of the object or of the process.

    LOCKED, with its owner, if another process, or another module of this one, holds it; FILE if the lock file cannot be
    made.
    """

    def __init__(self, path: str, what: str) -> None:
        try:
            descriptor = _acquire(path, what)
        except OSError as failure:
            folder = os.path.dirname(path)
            reason = failure.strerror if os.path.isdir(folder) else f"there is no folder {folder}"
            raise FtnPytorchError("FILE", f"{what} cannot be written: {reason}") from failure
        _held.add(descriptor)
        self._path, self._descriptor, self._process = path, descriptor, os.getpid()
        self.release = weakref.finalize(self, _release, path, descriptor, self._process)

    def is_held(self) -> bool:
        """False in a forked child, since the lock stays with its parent, and where the folder was replaced."""
        return self.release.alive and self._process == os.getpid() and _is_still_named(self._descriptor, self._path)


def _release(path: str, descriptor: int, owner: int) -> None:
    if owner != os.getpid():
        return
    _held.discard(descriptor)
    with contextlib.suppress(OSError):
        # First the name, then the lock: whoever locks this file now finds that it is no longer the one of that name.
        if _is_still_named(descriptor, path):
            os.unlink(path)
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _acquire(path: str, what: str) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_still_named(descriptor, path):
                os.close(descriptor)
                continue
            _sign(descriptor)
            return descriptor
        except BlockingIOError:
            text = os.pread(descriptor, 4096, 0)
            os.close(descriptor)
            raise _locked(what, text, path) from None
        except OSError as failure:
            empty = os.fstat(descriptor).st_size == 0
            os.close(descriptor)
            if failure.errno not in _UNSUPPORTED:
                raise
            if empty:
                # Made by the attempt just now.
                os.unlink(path)
            return _acquire_by_existence(path, what)


def _is_still_named(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _acquire_by_existence(path: str, what: str) -> int:
    for _ in range(2):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            _sign(descriptor)
            return descriptor
        except FileExistsError:
            text = _read(path)
            if not _is_dead(text):
                break
            _remove_stale(path, text)
    raise _locked(what, _read(path), path, f" If that process is gone, remove {path}.")


def _remove_stale(path: str, text: bytes) -> None:
    """Take a stale lock out of the way, unless somebody else has been faster and it is a new one by now."""
    aside = f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.rename(path, aside)
        if _read(aside) != text:
            os.rename(aside, path)
        else:
            os.unlink(aside)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(4096)
    except OSError:
        return b""


def _sign(descriptor: int) -> None:
    rank, size = process.rank_and_size()
    owner = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "born": _born(os.getpid()),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        "rank": rank,
        "ranks": size,
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(owner).encode(), 0)


def _owner(text: bytes) -> dict[str, Any] | None:
    try:
        owner = json.loads(text)
        return owner if {"pid", "host", "since", "rank", "ranks"} <= set(owner) else None
    except (ValueError, TypeError):
        return None


def _is_dead(text: bytes) -> bool:
    """True if the owner was a process of this node that is no more; its number may belong to a new one by now."""
    owner = _owner(text)
    if owner is None or owner["host"] != socket.gethostname():
        return False
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return owner.get("born") != _born(owner["pid"])


def _born(pid: int) -> str | None:
    """When a process was started, in clock ticks since boot; None where that is not known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name of the program stands in parentheses and may hold anything.
            return stream.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return None


def _locked(what: str, text: bytes, path: str, advice: str = "") -> FtnPytorchError:
    owner = _owner(text)
    if owner is None:
        by = f"another process (see {path})"
    else:
        rank = f", rank {owner['rank']} of {owner['ranks']}" if owner["ranks"] > 1 else ""
        same = owner["pid"] == os.getpid() and owner["host"] == socket.gethostname()
        number = "this process itself, through another module" if same else f"process {owner['pid']}"
        by = f"{number} on {owner['host']}{rank}, since {owner['since']}"
    return FtnPytorchError(
        "LOCKED", f"{what} is being written by {by}. Ranks need names of their own: write %r for the rank.{advice}"
    )
