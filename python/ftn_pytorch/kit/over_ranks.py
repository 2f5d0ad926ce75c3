# SPDX-License-Identifier: MIT
"""Whether a part of the kit counts what all ranks have, and a warning where nobody has said so."""

from __future__ import annotations

from ..ranks import communicator
from ..system import process


def asked_for(said: bool | None, part: str, what: str) -> bool:
    """``said``, False for None: a part never waits for other ranks that was not told to.

    None is worth a warning, once and on rank 0, where the script has a communicator of several ranks: what is learnt
    on each rank by itself makes their networks differ. ``part``: its name. ``what``: what each rank does by itself.
    """
    if said is None:
        ours = communicator.current_if_clear()
        if ours is not None and ours.size > 1 and ours.is_ranked and ours.rank == 0:
            process.warn_once(
                f"{part}: each of the {ours.size} ranks {what}. {part}(..., over_ranks=True) does it over all ranks of "
                "the communicator, which all must call it then; over_ranks=False means it as it is",
                of_rank=False,
            )
    return bool(said)
