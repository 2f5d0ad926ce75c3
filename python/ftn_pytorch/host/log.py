# SPDX-License-Identifier: MIT
"""Lines of FTN_PYTORCH_LOG, from Python."""

from __future__ import annotations

from . import process

INFO = 1


def info(text: str) -> None:
    """A line in the log of the library; nothing in a plain Python, and where its level is lower."""
    host = process.host()
    if host is not None and host.log_level() >= INFO:
        host.log(INFO, text.encode("utf-8", "backslashreplace").decode("utf-8"))
