# SPDX-License-Identifier: MIT
"""All promises."""

from __future__ import annotations

from .background import background
from .plain import Numbers
from .recorded import recorded
from .restarted import restarted
from .saved import saved
from .scripts import Script
from .verdicts import Verdict

# name: (promise, how the input varies)
PROMISES = {
    "recorded": (recorded, "early"),
    "recorded-late": (recorded, "late"),
    "restarted": (restarted, "early"),
    "saved": (saved, "early"),
    "background": (background, "early"),
}


def verdict(script: Script, promise: str) -> Verdict:
    """What becomes of a promise for a script."""
    function, varied = PROMISES[promise]
    return function(script, Numbers(script, varied))
