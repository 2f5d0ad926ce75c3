# SPDX-License-Identifier: MIT
"""Threads of this process beside the one that asks."""

from __future__ import annotations

import sys

from . import process


def there_are() -> bool:
    """Whether another thread may run a script meanwhile: one of Python, or one of the program that has called. Threads
    that torch has for autograd call nothing by themselves."""
    library = process.host()
    return len(sys._current_frames()) > 1 or (library is not None and library.other_threads() > 0)
