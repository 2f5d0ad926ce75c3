# SPDX-License-Identifier: MIT
"""How long many ranks take to start, from what one of them asks the file system. A model, not a measurement.

A file system of a rate serves all operations, and a rank waits for the answer to each before it sends the next one. So
a start takes as long as the server needs for all, or as long as one rank needs for its own, whichever is longer, and
then what the rank computes. tests/benchmarks/test_scale.py compares this with a simulation of the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

NO_LOAD = "no load"
OF_A_NODE = "torch script with an optimizer, with a pack"
RANK_OF_A_NODE = 82
"""Operations of a rank and its worker, all of them counted as opens: tests/python/test_node.py counts them."""


@dataclass(frozen=True)
class Counts:
    """One rank: operations on paths, those of them that open a file, different paths, and seconds of CPU."""

    operations: int
    opens: int
    paths: int
    cpu: float


@dataclass(frozen=True)
class Start:
    """A row: each rank does the same, and one process on each node may do more."""

    name: str
    rank: Counts
    node: Counts | None = None


@dataclass(frozen=True)
class Cluster:
    """ranks_per_node: the last node may have fewer. latency: seconds from a question to its answer."""

    ranks: int = 10_000
    ranks_per_node: int = 128
    latency: float = 0.3e-3

    @property
    def nodes(self) -> int:
        """All of them."""
        return -(-self.ranks // self.ranks_per_node)


def seconds(start: Start, rate: float, *, is_cached: bool, cluster: Cluster = Cluster()) -> float:
    """Until all ranks have started, for a file system that serves ``rate`` operations a second.

    is_cached: a node asks once for each path, and opens are asked for each time, as is usual for clients of Lustre.
    Otherwise each operation of each rank is asked for.
    """
    total, waited, cpu = 0.0, 0.0, 0.0
    for counts, processes in ((start.rank, cluster.ranks), (start.node, cluster.nodes)):
        if counts is None:
            continue
        one = min(counts.operations, counts.opens + counts.paths) if is_cached else counts.operations
        total += processes * counts.opens + cluster.nodes * counts.paths if is_cached else processes * counts.operations
        waited += one * cluster.latency
        cpu += counts.cpu
    return max(total / rate, waited) + cpu


def times(
    starts: Iterable[Start], rates: Iterable[float] = (3e4, 1e5), cluster: Cluster = Cluster()
) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table."""
    columns = [(rate, is_cached) for is_cached in (False, True) for rate in rates]
    titles = [f"{'cached' if is_cached else 'not cached'}, {rate:,.0f}/s" for rate, is_cached in columns]
    rows = []
    for start in starts:
        each = [_time(seconds(start, rate, is_cached=kept, cluster=cluster)) for rate, kept in columns]
        rows.append([start.name, f"{start.rank.operations:,}", *each])
    return ["program", "operations of a rank", *titles], rows


def _time(value: float) -> str:
    if value < 300:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5970 else f"{value / 3600:.1f} h"


def starts_of(counts: Mapping[str, Counts], operations: int = RANK_OF_A_NODE) -> list[Start]:
    """Rows: programs as they were counted, and ``load(..., per="node")``.

    The process of the node does what ``OF_A_NODE`` does, and a rank these operations.
    """
    rows = [Start(name, each) for name, each in counts.items()]
    if OF_A_NODE in counts:
        alone = Counts(operations, operations, operations, counts[NO_LOAD].cpu)
        rows.append(Start('per="node", with a pack', alone, counts[OF_A_NODE]))
    return rows
