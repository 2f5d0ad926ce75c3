# SPDX-License-Identifier: MIT
"""Whether a script is only tried, as all commands do: then its log, checkpoints and recordings write nothing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from . import variables

# Of the environment, because processes that a script starts are part of the trial.
_VARIABLE = f"{variables.PREFIX}TRIAL"


def is_on() -> bool:
    return variables.asks_for("TRIAL")


@contextlib.contextmanager
def begun() -> Iterator[None]:
    """Until the end of the body. A script finds no arguments of the command, as it finds none of a program."""
    before, arguments = os.environ.get(_VARIABLE), sys.argv[1:]
    os.environ[_VARIABLE] = "1"
    del sys.argv[1:]
    try:
        yield
    finally:
        sys.argv[1:] = arguments
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
