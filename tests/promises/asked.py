# SPDX-License-Identifier: MIT
"""All promises."""

from __future__ import annotations

import functools

from .background import background
from .compiled import compiled
from .fortran_driver import driven, on_device, on_ranks
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
    "compiled": (compiled, "early"),
    "saved": (saved, "early"),
    "background": (background, "early"),
    "arrays": (functools.partial(driven, form="arrays"), "early"),
    "sections": (functools.partial(driven, form="sections"), "early"),
    "tensors": (functools.partial(driven, form="tensors"), "early"),
    "ranks": (functools.partial(on_ranks, promise="ranks"), "early"),
    "node": (functools.partial(on_ranks, promise="node"), "early"),
    "device": (on_device, "early"),
    "saved-device": (functools.partial(saved, device="cuda"), "early"),
}


def verdict(script: Script, promise: str) -> Verdict:
    """What becomes of a promise for a script."""
    function, varied = PROMISES[promise]
    return function(script, Numbers(script, varied))
