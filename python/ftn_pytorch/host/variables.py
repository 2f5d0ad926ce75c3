# SPDX-License-Identifier: MIT
"""The environment variables that the library and its tools read, and those that somebody has misspelt."""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import launcher, log, process

PREFIX = "FTN_PYTORCH_"
KNOWN = {
    PREFIX + name
    for name in (
        # read by programs and scripts
        *("PYTHON", "MODE", "TRIAL", "TRIAL_LOAD", "LOG", "LOG_FILE", "PROFILE", "TRACE", "RECORD", "RECORD_CALLS"),
        *("LOG_RANKS", "LOG_LIMIT", "TORCH_PROFILE", "TORCH_PROFILE_CALLS", "PLAIN_IMPORT"),
        *("FAULTHANDLER", "SHIM", "CPP_FUNCTIONS", "DIRECT_TENSORS"),
        # read by make and the tests
        *("TORCH", "OFFLOAD_FLAGS", "BUILD_DIR", "TEST_SEED", "TEST_KILLS", "TEST_ATTACK", "TOOLS"),
        *("FTORCH_SOURCE", "PFUNIT"),
    )
}


def unknown(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables with the prefix of the library that nothing reads, each with the name that may be meant, or ""."""
    found = sorted(name for name in environment if name.startswith(PREFIX) and name not in KNOWN)
    if not found:
        return {}
    import difflib

    # Without the prefix, which makes all names alike.
    names = [name.removeprefix(PREFIX) for name in KNOWN]
    close = {name: difflib.get_close_matches(name.removeprefix(PREFIX), names, n=1) for name in found}
    return {name: PREFIX + near[0] if near else "" for name, near in close.items()}


def tell_unknown() -> None:
    """Say in the log which variables have no effect, because nothing reads them."""
    for name, meant in unknown(os.environ).items():
        log.info(
            f"{name} is set, but nothing reads a variable of this name{f'; {meant} may be meant' * bool(meant)}",
        )


def asks_for(name: str) -> bool:
    """True where a variable, without the prefix, is set to something other than "0"."""
    return os.environ.get(PREFIX + name, "") not in ("", "0")


def writes_here() -> bool:
    """Whether FTN_PYTORCH_LOG_RANKS lets this rank write what observation finds; rank 0 alone for a wrong value."""
    text = os.environ.get(f"{PREFIX}LOG_RANKS", "")
    here = launcher.launched_rank_and_size()[0]
    if not text:
        return True
    found = is_in_list(text, here)
    if found is None and process.host() is None:  # the library has told already
        log.job_warning(f'{PREFIX}LOG_RANKS is "{text}": it must be ranks such as "0,100-103", so rank 0 alone writes')
    return here == 0 if found is None else found


def size_limit(usual: int) -> int:
    """Bytes that FTN_PYTORCH_LOG_LIMIT allows; ``usual`` without one, and for a wrong value."""
    found = bytes_of(os.environ.get(f"{PREFIX}LOG_LIMIT", ""))
    return usual if found is None else found


def is_in_list(text: str, number: int) -> bool | None:
    """Whether a list such as "0,100-103" has a number, None for what is no such list. As in src/observe/choice.cpp."""
    is_there = False
    for part in text.split(","):
        first, dash, last = part.partition("-")
        bounds = [first, last if dash else first]
        if not all(each.isascii() and each.isdigit() for each in bounds) or int(bounds[1]) < int(bounds[0]):
            return None
        is_there = is_there or int(bounds[0]) <= number <= int(bounds[1])
    return is_there


def bytes_of(text: str) -> int | None:
    """Bytes of "1000", "64K", "100M", "2G"; a very large number for "0", None for what is no size. As there."""
    bits = {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
    digits = text[:-1] if bits else text
    if not (digits.isascii() and digits.isdigit()) or int(digits) << bits >= 1 << 63:
        return None
    return int(digits) << bits or (1 << 63) - 1
