# SPDX-License-Identifier: MIT
"""The environment variables that the library and its tools read, and those that somebody has misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

PREFIX = "FTN_PYTORCH_"
KNOWN = {
    PREFIX + name
    for name in (
        # read by programs and scripts
        *("PYTHON", "MODE", "TRIAL", "TRIAL_LOAD", "LOG", "LOG_FILE", "PROFILE", "TRACE", "RECORD", "RECORD_CALLS"),
        *("TORCH_PROFILE", "TORCH_PROFILE_CALLS"),
        *("FAULTHANDLER", "SHIM", "CPP_FUNCTIONS", "DIRECT_TENSORS"),
        # read by make and the tests
        *("TORCH", "OFFLOAD_FLAGS", "BUILD_DIR", "TEST_SEED", "TEST_KILLS", "TEST_ATTACK", "TOOLS"),
        *("FTORCH_SOURCE", "PFUNIT"),
    )
}


def unknown(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables with the prefix of the library that nothing reads, each with the name that may be meant, or ""."""
    found = sorted(name for name in environment if name.startswith(PREFIX) and name not in KNOWN)
    # Without the prefix, which makes all names alike.
    names = [name.removeprefix(PREFIX) for name in KNOWN]
    close = {name: difflib.get_close_matches(name.removeprefix(PREFIX), names, n=1) for name in found}
    return {name: PREFIX + near[0] if near else "" for name, near in close.items()}
