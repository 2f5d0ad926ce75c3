# SPDX-License-Identifier: MIT
"""Sums and largest numbers of all ranks by a real MPI, and what ranks that mean different things are told."""

import pytest

from mpi_ranks import implementations, run

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parametrize("mpi_name", implementations())

NUMBERS = """
    from ftn_pytorch.ranks import totals
    inf = float("inf")
    mine = torch.tensor([rank, -rank, -inf if rank else 3.0, inf if rank == size - 1 else 0.0], dtype=torch.float64)
    most = totals.largest(mine, "a b c d", "a test").tolist()
    right = most == [size - 1, 0.0, 3.0, inf]
    long = torch.arange(500, dtype=torch.float64) + rank
    sums = size * (long - rank) + size * (size - 1) / 2
    right = right and torch.equal(totals.total(long, "long", "a test"), sums)
    right = right and totals.total(long[:0], "", "a test").tolist() == []
    nothing = totals.total(torch.tensor([float("nan") if rank else 1.0], dtype=torch.float64), "x", "a test")
    right = right and (size == 1) == (float(nothing) == 1)
    torch.manual_seed(rank)
    bits = totals.total(torch.randn(1000, dtype=torch.float64), "bits", "a test").numpy().tobytes().hex()
    right = right and len(set(ours.gather(bits, purpose="a test"))) == 1
    # 32 bits of a digest of 10,000 ranks
    right = right and 10_000 * sum(65_535**2 for _ in range(10_000)) == sum(65_535 for _ in range(10_000)) ** 2
    right = right and 10_000 * 65_535**2 < 2**53
    end([right, ours.calls[0]])
"""


@pytest.mark.parametrize("size", [1, 3])
def test_numbers_of_all_ranks_by_one_exchange_each(tmp_path, mpi_name, size):
    assert run(size, tmp_path, NUMBERS, mpi_name) == [[True, 5]] * size


UNLIKE = """
    from ftn_pytorch.ranks import totals
    x = torch.ones(2 + (rank == 2), dtype=torch.float64)
    found = [told(each, x, f"columns {len(x)}", "a test") for each in (totals.total, totals.largest)]
    end([*found, totals.total(x[:1], "alike", "a test").tolist()])
"""


def test_ranks_that_mean_different_things_are_told_on_all_ranks(tmp_path, mpi_name):
    for *refused, after in run(3, tmp_path, UNLIKE, mpi_name):
        assert after == [3.0]
        for status, text in refused:
            assert status == "FORMAT"
            assert text.startswith("a test: the ranks do not mean the same: rank 0 has columns 2, and rank 2 has col")


APART = """
    from ftn_pytorch.ranks import totals

    def most(fails):
        if fails:
            raise ValueError
        return totals.largest(torch.ones(1, dtype=torch.float64), "x", "a test").tolist()

    counted = failed_calls.Counted(most)
    counted(False)
    second = told(counted, rank == 1)
    end(told(counted, False) if rank == 1 else second)
"""


def test_ranks_in_different_calls_are_told_apart(tmp_path, mpi_name):
    for status, text in run(2, tmp_path, APART, mpi_name):
        assert status == "PYTHON" and text.startswith("a test: the ranks are in different calls of it: rank")


GROUP = """
    from ftn_pytorch import init_process_group
    from ftn_pytorch.ranks import totals
    init_process_group()
    x = torch.tensor([rank, -rank], dtype=torch.float64)
    found = [each(x, "x", "a test").tolist() for each in (totals.total, totals.largest)]
    tell([*found, told(totals.total, x, f"rank {rank}", "a test")[1], ours.calls[0]])
"""


def test_a_process_group_is_taken_where_there_is_one(tmp_path, mpi_name):
    for total, largest, text, calls in run(2, tmp_path, GROUP, mpi_name, expect=None):
        assert (total, largest, calls) == ([1, -1], [1, 0], 0)
        assert "rank 0 has rank 0, and rank 1 has rank 1" in text
