# SPDX-License-Identifier: MIT
"""What ranks tell each other while they write or restore one checkpoint: failures are of all, warnings come once."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from ..errors import FtnPytorchError, describe
from ..ranks import common_warnings
from ..ranks.communicator import Communicator

Outcome = Any
"""Status and text of a failure, None for none."""


def exchange(
    ours: Communicator, purpose: str, failure: Exception | None, warnings: Sequence[str] = (), value: Any = None
) -> tuple[list[Outcome], list[Any]]:
    """Outcomes and values of all ranks, which must all call this. Their warnings are given on rank 0.

    ``value``: what JSON can hold.
    """
    mine = [None if failure is None else describe(failure, ""), list(warnings), value]
    everywhere = [json.loads(text) for text in ours.gather(json.dumps(mine), purpose=purpose)]
    common_warnings.tell(ours.rank, [warned for _, warned, _ in everywhere])
    return [outcome for outcome, _, _ in everywhere], [found for _, _, found in everywhere]


def require_all(outcomes: Sequence[Outcome], failure: Exception | None, what: str) -> None:
    """Raise the failure of this rank, or else that of another one, which ``what`` tells: none may go on alone."""
    if failure is not None:
        raise failure
    for rank, outcome in enumerate(outcomes):
        if outcome is not None:
            raise FtnPytorchError(outcome[0], f"rank {rank} {what}: {outcome[1]}")


def of_all(warnings: Sequence[str], folder: str, path: str) -> list[str]:
    """Warnings about a folder of one rank, as they are on all: with ``path``, in which ``%r`` is the rank."""
    return [text.replace(folder, os.path.realpath(path)) for text in warnings]
