# SPDX-License-Identifier: MIT
"""What a checkpoint says of itself: who wrote it, when, where, and how it must be read."""

from __future__ import annotations

import platform
import socket
import time
from typing import Any

from .._version import __version__
from ..ranks import own_rank
from ..system import launcher
from ..values import loaded, plain

# Ranks of several communicators may have the same number, but not in their job.
RANK_OF_JOB = "rank_of_job"


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
        "job": launcher.job(),
        RANK_OF_JOB: launcher.launched_rank_and_size()[0],
    }
