# SPDX-License-Identifier: MIT
"""What a training step has returned, as numbers."""

from __future__ import annotations

import math
from typing import Any

from ..errors import FtnPytorchError


def number(value: Any) -> Any:
    """A tensor or array of one element as the number in it; everything else as it is."""
    return value.item() if hasattr(value, "item") else value


def outcome_of(returned: Any) -> tuple[bool, float]:
    """``(is_completed, loss)`` of what a step has returned. RESULT_TYPE if it is something else."""
    is_completed, loss = map(
        number, returned if isinstance(returned, tuple) and len(returned) == 2 else (False, returned)
    )
    loss = math.nan if loss is None else loss
    if type(is_completed) is not bool or not isinstance(loss, (int, float)):
        raise FtnPytorchError(
            "RESULT_TYPE", f"the step returned {returned!r}, it must be its loss or (is_completed, loss)"
        )
    return is_completed, float(loss)
