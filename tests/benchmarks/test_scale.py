# SPDX-License-Identifier: MIT
"""The model of many ranks that start, with given counts, and the counts of a trace."""

import heapq
from pathlib import Path

import pytest
from harness import document
from harness.tables import table
from scale import benchmark, count
from scale.model import NO_LOAD, OF_A_NODE, RANK_OF_A_NODE, Cluster, Counts, Start, seconds, starts_of, times

SCALE = Path(benchmark.__file__).parent
ONE = Counts(operations=1000, opens=300, paths=400, cpu=2.0)
WAYS = ("", ", with a pack")
TRACE = """\
7 execve("/data/run/bench_start", ["bench_start"], 0x7ffd /* 20 vars */) = 0
7 openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3
7 newfstatat(AT_FDCWD, "/data/run/open", 0x7ffd, 0) = -1 ENOENT (No such file or directory)
7 openat(AT_FDCWD, "/data/run/open", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)
7 getcwd("/data/run", 4096) = 10
8 readlink("/proc/self/exe", "/data/run/bench_start", 4096) = 21
8 newfstatat(3, "", {st_mode=S_IFREG|0644, st_size=1, ...}, AT_EMPTY_PATH) = 0
"""


def test_the_server_or_the_rank_decides():
    many, few = Cluster(10_000, 128, 1e-3), Cluster(2, 2, 1e-3)
    start = Start("one", ONE)
    assert many.nodes == 79 and few.nodes == 1
    assert seconds(start, 1e4, is_cached=False, cluster=many) == pytest.approx(1000 + 2)
    assert seconds(start, 1e4, is_cached=True, cluster=many) == pytest.approx((3e6 + 79 * 400) / 1e4 + 2)
    assert seconds(start, 1e4, is_cached=False, cluster=few) == pytest.approx(1 + 2)
    assert seconds(start, 1e4, is_cached=True, cluster=few) == pytest.approx(0.7 + 2)


def test_a_process_for_each_node():
    cluster = Cluster(10_000, 128, 0)
    rank = Counts(50, 20, 40, 0.5)
    start = Start("node", rank, ONE)
    assert seconds(start, 1e4, is_cached=False, cluster=cluster) == pytest.approx((79_000 + 500_000) / 1e4 + 2.5)
    cached = 79 * (300 + 400) + 10_000 * 20 + 79 * 40
    assert seconds(start, 1e4, is_cached=True, cluster=cluster) == pytest.approx(cached / 1e4 + 2.5)


def simulated(clients: int, operations: int, rate: float, latency: float) -> float:
    """Seconds until clients that send one operation after the other have the answers to all; one server."""
    waiting = [(0.0, client) for client in range(clients)]
    left = [operations] * clients
    free = last = 0.0
    while waiting:
        sent, client = heapq.heappop(waiting)
        free = max(free, sent) + 1 / rate
        last = max(last, free + latency)
        left[client] -= 1
        if left[client]:
            heapq.heappush(waiting, (free + latency, client))
    return last


@pytest.mark.parametrize("clients, rate", [(200, 1e4), (200, 1e6), (1, 1e4), (3, 1e4)])
def test_the_formula_is_that_of_the_queue(clients, rate):
    queue = simulated(clients, 40, rate, 1e-3)
    formula = seconds(Start("", Counts(40, 0, 0, 0.0)), rate, is_cached=False, cluster=Cluster(clients, clients, 1e-3))
    assert formula <= queue <= 1.15 * formula


def test_counts_of_a_trace():
    assert count.of_trace(TRACE, 0.5) == Counts(operations=3, opens=1, paths=2, cpu=0.5)


def test_rows():
    counts = {NO_LOAD: Counts(50, 20, 40, 0.0), OF_A_NODE: ONE}
    assert [start.name for start in starts_of(counts)] == [*counts, 'per="node", with a pack']
    assert starts_of(counts)[-1] == Start('per="node", with a pack', Counts(82, 82, 82, 0.0), ONE)
    assert starts_of(counts, 7)[-1].rank == Counts(7, 7, 7, 0.0)
    assert len(starts_of({NO_LOAD: ONE})) == 1
    lines = table(*times(starts_of(counts), rates=(1e4,))).splitlines()
    assert lines[0] == "| program | operations of a rank | not cached, 10,000/s | cached, 10,000/s |"
    assert lines[3] == f"| {OF_A_NODE} | 1,000 | 17 min | 5 min |"


def test_the_table_of_the_page_is_that_of_the_counts():
    found = document.read(SCALE / "counts.json")
    found["cluster"] = {"ranks": 10_000, "ranks_per_node": 128, "rank_operations": RANK_OF_A_NODE}
    written = benchmark.markdown(found).split("\n\n")[-1]
    assert written in (SCALE / "README.md").read_text()
    programs = [NO_LOAD, "saved model, direct path", *[name + way for name in benchmark.SCRIPTS for way in WAYS]]
    assert [row["program"] for row in found["counts"]] == programs
