# SPDX-License-Identifier: MIT
"""Numbers of all ranks as one, by one exchange that also tells whether all ranks mean the same."""

from __future__ import annotations

import zlib
from typing import Any

from ..errors import FtnPytorchError
from . import communicator, means, process_group

# What two ranks send is rarely of different lengths, which would end the program.
_UNIT = 16
_HALF = 1 << 16


def total(values: Any, alike: str, purpose: str) -> Any:
    """Sums over all ranks, (n,) of float64 on the host, the same bits on all. All ranks call this.

    values: (n,), float64, the same n on all ranks. alike: what must be the same on all ranks, such as names of what is
    added, as a text; FORMAT on all ranks if it is not. purpose: what errors call this. Outside of MPI ``values``;
    ARGUMENT in a job of several ranks without communicator and process group, PYTHON if a rank does not come.
    """
    low, high = _halves(alike, len(values))
    found, sums = _exchanged([1.0, low, low**2, high, high**2], values, "sum", purpose)
    size, *sums_of_marks = map(int, found)
    # Of numbers with a given sum, equal ones have the least sum of squares.
    is_same = all(size * sums_of_marks[i + 1] == sums_of_marks[i] ** 2 for i in (0, 2))
    return sums if is_same else _refuse(alike, purpose)


def largest(values: Any, alike: str, purpose: str) -> Any:
    """The largest of all ranks of each number, of which none is NaN; else as ``total``."""
    low, high = _halves(alike, len(values))
    found, most = _exchanged([low, -low, high, -high], values, "max", purpose)
    return most if found[0] == -found[1] and found[2] == -found[3] else _refuse(alike, purpose)


def _halves(alike: str, length: int) -> tuple[int, int]:
    """Of a digest: sums of their squares are exact in a double for any number of ranks."""
    return divmod(zlib.crc32(f"{length} {alike}".encode("utf-8", "surrogateescape")), _HALF)


def _exchanged(marks: list[float], values: Any, operation: str, purpose: str) -> tuple[list[float], Any]:
    import torch

    n = len(marks) + len(values)
    given = torch.zeros(-(-n // _UNIT) * _UNIT, dtype=torch.float64, device="cpu")
    given[: len(marks)] = torch.tensor(marks, dtype=torch.float64, device="cpu")
    given[len(marks) : n] = values.detach()
    combined = means.combine(given.to(values.device), operation, purpose)
    return combined[: len(marks)].tolist(), combined[len(marks) : n]


def _refuse(alike: str, purpose: str) -> Any:
    """FORMAT. What told of it is the same on all ranks, so all come here."""
    texts = process_group.texts_of_all(communicator.current_if_clear(), alike, purpose)
    other = next((rank for rank, text in enumerate(texts) if text != texts[0]), 0)
    raise FtnPytorchError(
        "FORMAT",
        f"{purpose}: the ranks do not mean the same: rank 0 has {texts[0]}, and rank {other} has {texts[other]}. All "
        "ranks must begin with the same state and call this in the same order",
    )
