# SPDX-License-Identifier: MIT
"""One writer at a time: a lock file beside what is written, which names its owner.

The lock is ``flock``: it ends with its process, however that ends, so nothing stale is left that could block. On NFS
(Linux 2.6.12 and later) and on Lustre with the mount option ``flock`` it holds across nodes, with ``localflock`` or
``local_lock`` within a node only. On a file system without flock there is no lock, and a warning says so.
``src/base/file_lock.cpp`` is the other side of the same protocol.
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
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import FtnPytorchError
from . import launcher, process

_UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOLCK)

# Descriptors of the locks that this process holds. A forked child, such as a worker of a data loader, would keep them
# alive beyond the death of its parent. Below a program the library closes them there, since the program may fork, too.
_held: set[int] = set()


def _forget_in_child() -> None:
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


def _inherit(descriptor: int, stays_open: bool) -> None:
    if core := process.host():
        core.inherit(descriptor, stays_open)
    elif not stays_open:
        _held.add(descriptor)
    if stays_open:
        _held.discard(descriptor)


os.register_at_fork(after_in_child=_forget_in_child)


class Lock:
    """Held from construction until ``release``, the end of the object or of the process.

    LOCKED, with its owner, if another process, or another module of this one, holds it; FILE if the lock file cannot be
    made. ``check`` is given the owner before this one, and raises where that one forbids another: to tell it, the lock
    file stays in a job of several ranks.
    """

    def __init__(self, path: str, what: str, check: Callable[[Mapping[str, Any] | None], None] | None = None) -> None:
        stays = check is not None and launcher.job() is not None
        try:
            self._descriptor = _acquire(path, what, check)
        except OSError as failure:
            folder = os.path.dirname(path)
            reason = failure.strerror if os.path.isdir(folder) else f"there is no folder {folder}"
            raise FtnPytorchError("FILE", f"{what} cannot be written: {reason}") from failure
        self._path, self._process = path, os.getpid()
        self.release = weakref.finalize(self, _release, path, self._descriptor, self._process, stays)

    def is_held(self) -> bool:
        """False without flock, in a forked child, since the lock stays with its parent, and in a replaced folder."""
        here = self.release.alive and self._process == os.getpid()
        return here and self._descriptor is not None and _is_still_named(self._descriptor, self._path)


def _release(path: str, descriptor: int | None, owner: int, stays: bool) -> None:
    if descriptor is None or owner != os.getpid():
        return
    _inherit(descriptor, True)
    with contextlib.suppress(OSError):
        # First the name, then the lock: whoever locks this file now finds that it is no longer the one of that name.
        if not stays and _is_still_named(descriptor, path):
            os.unlink(path)
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _acquire(path: str, what: str, check: Callable[[Mapping[str, Any] | None], None] | None) -> int | None:
    """The descriptor that holds the lock, None on a file system without flock."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.pread(descriptor, 4096, 0)
            os.close(descriptor)
            raise _locked(what, text, path) from None
        except OSError as failure:
            os.close(descriptor)
            if failure.errno not in _UNSUPPORTED:
                raise
            with contextlib.suppress(OSError):
                os.unlink(path)
            process.warn_once(
                f"{os.path.dirname(path)} is on a file system without flock ({failure.strerror}): nothing prevents two "
                "processes from writing one file at once"
            )
            return None
        if _is_still_named(descriptor, path):
            if check is not None:
                try:
                    check(_owner(os.pread(descriptor, 4096, 0)))
                except BaseException:
                    os.close(descriptor)
                    raise
            _inherit(descriptor, False)
            # On a full disk it is held without the name of its owner.
            with contextlib.suppress(OSError):
                _sign(descriptor)
            return descriptor
        os.close(descriptor)


def _is_still_named(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _sign(descriptor: int) -> None:
    rank, size = launcher.launched_rank_and_size()
    owner = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        "rank": rank,
        "ranks": size,
        "job": launcher.job(),
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(owner).encode(), 0)


def _owner(text: bytes) -> dict[str, Any] | None:
    try:
        owner = json.loads(text)
        return owner if {"pid", "host", "since", "rank", "ranks"} <= set(owner) else None
    except (ValueError, TypeError):
        return None


def _locked(what: str, text: bytes, path: str) -> FtnPytorchError:
    owner = _owner(text)
    if owner is None:
        by = f"another process (see {path})"
    else:
        rank = f", rank {owner['rank']} of {owner['ranks']}" if owner["ranks"] > 1 else ""
        same = owner["pid"] == os.getpid() and owner["host"] == socket.gethostname()
        number = "this process itself, through another module" if same else f"process {owner['pid']}"
        by = f"{number} on {owner['host']}{rank}, since {owner['since']}"
    return FtnPytorchError(
        "LOCKED", f"{what} is being written by {by}. Ranks need names of their own: write %r for the rank."
    )
