# SPDX-License-Identifier: MIT
"""A lock that is handed to who waits, also where one thread takes it again and again."""

from __future__ import annotations

import os
import threading
from typing import Any


class FairLock:
    """A reentrant lock. A thread that lets go of it and takes it again at once does so after those that wait.

    ``threading.RLock`` lets such a thread win nearly always: one that trains in a loop would keep a checkpoint waiting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._owner: int | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True) -> bool:
        """As that of ``threading.RLock``."""
        if not self.is_mine():
            if not self._turn.acquire(blocking):
                return False
            # Who waits for the lock has the turn, so that nobody comes before.
            try:
                if not self._lock.acquire(blocking):
                    return False
            finally:
                self._turn.release()
            self._owner = threading.get_ident()
        self._depth += 1
        return True

    def release(self) -> None:
        """RuntimeError where this thread does not hold it."""
        if not self.is_mine():
            raise RuntimeError("the lock is released by a thread that does not hold it")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()

    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return self._owner == threading.get_ident()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *failure: Any) -> None:
        self.release()


def lock() -> FairLock:
    """The one lock of this process for the state of scripts: checkpoints are written and restored with it.

    A thread of a script that changes state takes it (``with ftn_pytorch.lock():``). Do not call Fortran meanwhile.
    """
    return _locks[0]


_locks = [FairLock()]


def _renew_lock() -> None:
    # Another thread of the parent may have held it, which is not there in the child.
    _locks[0] = FairLock()


os.register_at_fork(after_in_child=_renew_lock)
