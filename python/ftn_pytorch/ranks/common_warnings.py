# SPDX-License-Identifier: MIT
"""Warnings of what ranks do together: each comes once, from rank 0, with the ranks that it is about."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import listed
from ..system import process


def tell(rank: int, of_ranks: Sequence[Sequence[str]]) -> None:
    """Give the warnings of all ranks, in their order; nothing on ranks other than 0."""
    if rank != 0:
        return
    about: dict[str, list[int]] = {}
    for each, texts in enumerate(of_ranks):
        for text in dict.fromkeys(texts):
            about.setdefault(text, []).append(each)
    for text, ranks in about.items():
        process.warn(f"{text}{_named(ranks, len(of_ranks))}", of_rank=False)


def _named(ranks: Sequence[int], size: int) -> str:
    if size == 1:
        return ""
    if len(ranks) == size:
        return f" (all {size} ranks)"
    return f" (rank{'s' * (len(ranks) > 1)} {listed(ranks)} of {size})"
