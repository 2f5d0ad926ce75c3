# SPDX-License-Identifier: MIT
"""What is compared takes turns: the one loop of rounds, and how long each turn is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from . import summary
from .worker import Unavailable, Worker

Key = TypeVar("Key")
Turn = TypeVar("Turn")
# Calls as slow as this are not warmed up, or get three rounds at most.
LONG_NS, SLOW_NS = 2e8, 5e8


@dataclass(frozen=True)
class Effort:
    """How long one way may be measured.

    seconds: aim for all rounds together; rounds: turns that each way takes; samples: at most in one turn;
    sample_ns: shorter calls are measured several at a time; starts: processes that are started for nothing but their
    first call
    """

    seconds: float = 0.9
    rounds: int = 15
    samples: int = 400
    sample_ns: float = 5000
    starts: int = 5

    def of(self, rounds: int | None) -> Effort:
        """The same, in so many rounds if that is a number."""
        return self if rounds is None else dataclasses.replace(self, rounds=rounds)

    def turn(self, call_ns: float) -> tuple[int, int]:
        """Samples in one turn and calls in one sample, for a call that takes ``call_ns``."""
        calls = max(1, round(self.sample_ns / max(call_ns, 1)))
        budget = self.seconds * 1e9 / self.rounds
        return max(1, min(self.samples, int(budget / (calls * max(call_ns, 1))))), calls


FULL = Effort()
QUICK = Effort(seconds=0.01, rounds=2, samples=5, starts=1)


def take_turns(ways: Mapping[Key, Callable[[], Turn]], rounds: int) -> tuple[dict[Key, list[Turn]], dict[Key, str]]:
    """What each way gives in each round, another way first in each; and why those failed that have no rounds."""
    found: dict[Key, list[Turn]] = {way: [] for way in ways}
    failures: dict[Key, str] = {}
    for number in range(rounds):
        order = list(found)
        place = number % max(1, len(order))
        for way in order[place:] + order[:place]:
            try:
                found[way].append(ways[way]())
            except (Unavailable, OSError) as failure:
                failures[way] = str(failure)
                del found[way]
    return found, failures


@dataclass
class Times:
    """Microseconds of a call: of each sample in each round, and how many calls a sample is the mean of."""

    calls: int
    rounds: list[list[float]] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """As it goes into the JSON file."""
        return {
            "calls_per_sample": self.calls,
            "call_us": summary.summarize([value for one in self.rounds for value in one]),
        }


def measure(ways: Mapping[str, tuple[Worker, str]], effort: Effort) -> tuple[dict[str, Times], dict[str, str]]:
    """Warm up each way, a request to a process, then let them take turns. Times, and failures by way."""
    turns: dict[str, tuple[int, int]] = {}
    failures: dict[str, str] = {}
    slowest = 0.0
    for way, (worker, request) in ways.items():
        try:
            times = worker.times(request, 1, 1)
            if times[0] < LONG_NS:
                times = worker.times(request, 5, 1)
                times = worker.times(request, 3, effort.turn(min(times))[1])
        except Unavailable as failure:
            failures[way] = str(failure)
            continue
        turns[way] = effort.turn(min(times))
        slowest = max(slowest, min(times))

    def ask(way: str) -> Callable[[], list[float]]:
        worker, request = ways[way]
        return lambda: [nanoseconds / 1e3 for nanoseconds in worker.times(request, *turns[way])]

    rounds = effort.rounds if slowest < SLOW_NS else min(3, effort.rounds)
    found, failed = take_turns({way: ask(way) for way in turns}, rounds)
    return {way: Times(turns[way][1], each) for way, each in found.items()}, {**failures, **failed}


def rows(labels: Mapping[str, Any], ways: Mapping[str, tuple[Worker, str]], effort: Effort) -> list[dict[str, Any]]:
    """A row for each way of a case that has these labels. RuntimeError if one of them fails."""
    times, failures = measure(ways, effort)
    if failures:
        case = " ".join(map(str, labels.values()))
        raise RuntimeError("; ".join(f"{case}, {way}: {reason}" for way, reason in failures.items()))
    return [{**labels, "way": way, **each.row()} for way, each in times.items()]


def pivoted(found: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The times of all ways, by the labels of a case."""
    cases: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in found:
        cases.setdefault(tuple(row[label] for label in labels), {})[row["way"]] = row["call_us"]
    return cases
