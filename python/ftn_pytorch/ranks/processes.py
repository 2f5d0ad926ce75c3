# SPDX-License-Identifier: MIT
"""Which process is which rank, so that one that has ended can be told by its rank. As in src/base/mpi_sum.cpp."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

_UNKNOWN = -1.0


def here() -> tuple[float, float]:
    """Number of the node, and of this process on it. Two ranks with the same number see each other's processes.

    That is 48 bits of a hash (FNV-1a), exact in a double; -1 where processes do not show in files.
    """
    import socket

    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        return _UNKNOWN, float(os.getpid())
    found = 14695981039346656037
    for each in f"{socket.gethostname()}|{space}".encode("utf-8", "surrogateescape"):
        found = (found ^ each) * 1099511628211 % 2**64
    return float(found % 2**48), float(os.getpid())


def rank_that_ended(roll: Sequence[float], rank: int) -> int:
    """The first rank on the node of this one whose process has ended; -1 if none has, or if that is not known.

    roll: node and process of each rank, one after the other.
    """
    if not roll or roll[2 * rank] == _UNKNOWN:
        return -1
    near = (each for each in range(len(roll) // 2) if roll[2 * each] == roll[2 * rank])
    return next((each for each in near if _has_ended(process_of(roll, each))), -1)


def process_of(roll: Sequence[float], rank: int) -> int:
    return int(roll[2 * rank + 1])


def _has_ended(process: int) -> bool:
    """True for a process that is gone, or that nobody has waited for yet."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0] in ("Z", "X")
    return True
