# SPDX-License-Identifier: MIT
"""The environment variables that the library and its tools read, and those that somebody has misspelt."""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import log

PREFIX = "FTN_PYTORCH_"
KNOWN = {
    PREFIX + name
    for name in (
        # read by programs and scripts
        *("PYTHON", "MODE", "TRIAL", "TRIAL_LOAD", "LOG", "LOG_FILE", "PROFILE", "TRACE", "RECORD", "RECORD_CALLS"),
        *("LOG_RANKS", "LOG_LIMIT", "TORCH_PROFILE", "TORCH_PROFILE_CALLS", "PLAIN_IMPORT", "PACK"),
        *(
            "FAULTHANDLER",
            "CPP_FUNCTIONS",
            "DIRECT_TENSORS",
            "EXTENSIONS",
            "CHECK_EVERY",
            "DEEPBIND",
            "DOCTOR_REPORT",
        ),
        # read by make and the tests
        *("TORCH", "OFFLOAD_FLAGS", "BUILD_DIR", "TEST_SEED", "TEST_KILLS", "TEST_ATTACK", "TOOLS"),
        *("FTORCH_SOURCE", "PFUNIT", "WHEELS", "WRITERS", "TORCHES"),
        *("COMIN_SOURCE", "DALES_SOURCE", "GEOGATE_SOURCE", "HOSTS_BUILD"),
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
