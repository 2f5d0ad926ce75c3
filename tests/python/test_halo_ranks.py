# SPDX-License-Identifier: MIT
"""Halos over the ranks of a real MPI: outputs and gradients of the whole domain, folds, recordings, what is refused."""

from pathlib import Path

import pytest

from mpi_ranks import implementations, run

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parametrize("mpi_name", implementations())

HERE = f"""
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    import halo_ranks
    from ftn_pytorch.halo import Exchange, OverSubdomains, halo_width
    def total(gradient):
        return sums.allreduce(ours, gradient.contiguous(), "a test")
"""

CNN = """
    answers = []
    for boundary in (("closed", "periodic"), ("reflected", "periodic"), ("replicated", "closed"), ("periodic", "reflected")):
        for padding in ("valid", "same"):
            answers.append(max(halo_ranks.differences(rank, {grid}, {rows}, {columns}, boundary, total, padding)))
    end(answers)
"""


@pytest.mark.parametrize(
    ("grid", "rows", "columns"),
    [
        ((1, 1), [9], [8]),
        ((2, 1), [7, 5], [12]),
        ((1, 2), [9], [8, 7]),
        ((2, 2), [6, 9], [8, 7]),
        ((3, 2), [3, 9, 4], [5, 8]),
        ((4, 2), [3, 2, 5, 4], [6, 7]),
    ],
    ids=lambda value: "x".join(map(str, value)),
)
def test_a_cnn_over_subdomains_is_that_of_the_whole(tmp_path, mpi_name, grid, rows, columns):
    text = HERE + CNN.format(grid=grid, rows=rows, columns=columns)
    for differences in run(grid[0] * grid[1], tmp_path, text, mpi_name):
        assert max(differences) < 1e-12
