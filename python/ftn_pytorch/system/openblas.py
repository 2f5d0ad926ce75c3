# SPDX-License-Identifier: MIT
"""Threads of the OpenBLAS that comes with NumPy and SciPy, which takes all cores of a node in each rank."""

from __future__ import annotations

import ctypes
import os
import re

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS")
"""What OpenBLAS itself reads when it is loaded."""

# In the folders of wheels only: an OpenBLAS elsewhere may be that of the program, which has its own numbers.
_OURS = re.compile(r"/(numpy|scipy)\.libs/[^/]*openblas[^/]*$")
_NAMES = tuple(
    f"{begin}{rest}"
    for begin in ("scipy_", "")
    for rest in ("openblas_%s_num_threads64_", "openblas_%s_num_threads_64", "openblas_%s_num_threads")
)

_known: dict[str, int] = {}
"""The number that was set last, by library."""


def set_threads(count: int, at_most: bool = False) -> None:
    """Set the number of threads of each OpenBLAS that is new or has another one; ``at_most``: keep smaller ones."""
    for path in _loaded():
        if _known.get(path) == count:
            continue
        library = ctypes.CDLL(path)
        for name in _NAMES:
            setter, getter = (getattr(library, name % what, None) for what in ("set", "get"))
            if setter is not None and getter is not None:
                if not at_most or getter() > count:
                    setter(ctypes.c_int(count))
                break
        _known[path] = count


def _loaded() -> list[str]:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps if "openblas" in line}
    except OSError:
        return []
    return sorted(path for path in paths if _OURS.search(path) and os.path.isfile(path))
