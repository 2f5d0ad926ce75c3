# SPDX-License-Identifier: MIT
"""What is said about many times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

NAMES = ("min", "mean", "median", "p99", "max")


def summarize(values: Sequence[float]) -> dict[str, float]:
    """Minimum, mean, median, 99th percentile and maximum, in the unit of the values, and their number.

    The percentile is the smallest value that at least 99 of 100 values do not exceed; of fewer than 100 values it is
    the largest. Raises ValueError without values.
    """
    if not values:
        raise ValueError("there are no times to summarize")
    ordered = sorted(values)
    return {
        "min": ordered[0],
        "mean": statistics.fmean(ordered),
        "median": statistics.median(ordered),
        "p99": ordered[math.ceil(0.99 * len(ordered)) - 1],
        "max": ordered[-1],
        "samples": len(ordered),
    }


def ratio(rounds: Sequence[Sequence[float]], floor: Sequence[Sequence[float]]) -> float:
    """Median over the rounds of the ratio of medians: neighbours in time are compared, so that drift cancels.

    Raises ValueError if the two have no round in common.
    """
    return statistics.median(statistics.median(one) / statistics.median(other) for one, other in zip(rounds, floor))


def difference(rounds: Sequence[Sequence[float]], floor: Sequence[Sequence[float]]) -> float:
    """Median over the rounds of the difference of medians, in the unit of the values; ValueError as above."""
    return statistics.median(statistics.median(one) - statistics.median(other) for one, other in zip(rounds, floor))
