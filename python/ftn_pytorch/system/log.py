# SPDX-License-Identifier: MIT
"""Lines of FTN_PYTORCH_LOG, from Python, and warnings that need not come from all ranks."""

from __future__ import annotations

from . import launcher, process

INFO = 1


def is_wanted() -> bool:
    """True where ``info`` writes something."""
    host = process.host()
    return host is not None and host.log_level() >= INFO


def job_warning(text: str) -> None:
    """A warning, once, of what all ranks of a job have alike: rank 0 gives it, the others have it in their logs."""
    if launcher.launched_rank_and_size()[0] == 0:
        process.warn_once(text, of_rank=False)
    else:
        info(text)


def info(text: str) -> None:
    """A line in the log of the library; nothing in a plain Python, and where its level is lower."""
    if is_wanted():
        process.host().log(INFO, text.encode("utf-8", "backslashreplace").decode("utf-8"))
