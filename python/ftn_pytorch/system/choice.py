# SPDX-License-Identifier: MIT
"""Which ranks write what observation finds, and how much of it. As in src/observe/choice.cpp."""

from __future__ import annotations

import os

from . import launcher, log, process

RANKS_VARIABLE = "FTN_PYTORCH_LOG_RANKS"
LIMIT_VARIABLE = "FTN_PYTORCH_LOG_LIMIT"


def writes_here() -> bool:
    """Whether FTN_PYTORCH_LOG_RANKS lets this rank write what observation finds; rank 0 alone for a wrong value."""
    text = os.environ.get(RANKS_VARIABLE, "")
    here = launcher.launched_rank_and_size()[0]
    if not text:
        return True
    found = is_in_list(text, here)
    if found is None and process.host() is None:  # the library has told already
        log.job_warning(f'{RANKS_VARIABLE} is "{text}": it must be ranks such as "0,100-103", so rank 0 alone writes')
    return here == 0 if found is None else found


def size_limit(usual: int) -> int:
    """Bytes that FTN_PYTORCH_LOG_LIMIT allows; ``usual`` without one, and for a wrong value."""
    found = bytes_of(os.environ.get(LIMIT_VARIABLE, ""))
    return usual if found is None else found


def is_in_list(text: str, number: int) -> bool | None:
    """Whether a list such as "0,100-103" has a number, None for what is no such list."""
    is_there = False
    for part in text.split(","):
        first, dash, last = part.partition("-")
        bounds = [first, last if dash else first]
        if not all(each.isascii() and each.isdigit() for each in bounds) or int(bounds[1]) < int(bounds[0]):
            return None
        is_there = is_there or int(bounds[0]) <= number <= int(bounds[1])
    return is_there


def bytes_of(text: str) -> int | None:
    """Bytes of "1000", "64K", "100M", "2G"; a very large number for "0", None for what is no size."""
    bits = 10 * ("KMG".find(text[-1:] or " ") + 1)
    digits = text[:-1] if bits else text
    if not (digits.isascii() and digits.isdigit()) or int(digits) << bits >= 1 << 63:
        return None
    return int(digits) << bits or (1 << 63) - 1
