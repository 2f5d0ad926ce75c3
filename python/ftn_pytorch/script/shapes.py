# SPDX-License-Identifier: MIT
"""Shapes that are wanted: sizes, names of sizes that must agree with each other, None for any size."""

from __future__ import annotations

from collections.abc import Callable

Shape = tuple[int | str | None, ...]


def mismatch(found: tuple, wanted: Shape, sizes: dict[str, tuple[int, str]], place: Callable[[int], str]) -> str:
    """What is wrong with the shape ``found``, or an empty text.

    ``sizes`` holds the named sizes met so far and where, for all arrays of one call; ``place`` names an axis there.
    """
    if len(found) != len(wanted):
        return f"it has {len(found)} axes, not {len(wanted)}"
    for axis, (size, expected) in enumerate(zip(found, wanted)):
        if isinstance(expected, str):
            first, source = sizes.setdefault(expected, (size, place(axis)))
            if size != first:
                return f"{expected} is {size} on axis {axis}, but {first} on {source}"
        elif expected is not None and size != expected:
            return f"axis {axis} has size {size}, not {expected}"
    return ""
