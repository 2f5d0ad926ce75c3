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
        return sums.combined(ours, sums.real(gradient), "sum", 99, "a test").reshape(gradient.shape)
"""

CNN = """
    answers = []
    kinds = ("closed", "periodic"), ("reflected", "periodic"), ("replicated", "closed"), ("periodic", "reflected")
    for boundary in kinds:
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


UNET = """
    boundary = ("reflected", "periodic")
    found = halo_ranks.differences(rank, (2, 2), [12, 8], [8, 16], boundary, total, "same", make=halo_ranks.UNet)
    net = halo_ranks.UNet()
    odd = Exchange((4 + 2 * (rank < 2), 8), halo_width(net), grid=(2, 2))
    end([found, halo_width(net), told(OverSubdomains, net, odd)])
"""


def test_a_unet_over_subdomains_pools_the_cells_of_the_whole(tmp_path, mpi_name):
    for differences, width, (status, text) in run(4, tmp_path, HERE + UNET, mpi_name):
        assert width == [12, 12] and max(differences) < 1e-12
        assert status == "ARGUMENT" and "the strides of the network make 4 together" in text


FOLD = """
    # uneven columns, so that two ranks are on the other side of the pole
    rows, columns, grid, h = [4, 3], [3, 6, 3], (2, 3), 2
    whole = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(0))
    y, x = halo_ranks.slices(rank, grid, rows, columns)
    part = whole[..., y, x]
    same = True
    for pivot in "TF":
        for at in "TUVF":
            boundary = [["reflected", "north fold " + pivot], "periodic"]
            mine = Exchange(part.shape[1:], h, grid=grid, boundary=boundary, at=at)(part, sign=-1)
            wanted = halo_ranks.alone(whole, h, boundary, at)
            same = same and torch.equal(mine, wanted[..., y.start : y.stop + 2 * h, x.start : x.stop + 2 * h])
    end(same)
"""


def test_a_fold_over_ranks_is_that_of_one_rank(tmp_path, mpi_name):
    assert run(6, tmp_path, HERE + FOLD, mpi_name) == [True] * 6


LAND = """
    # four sub-domains of which one is land, in an order of their own
    starts, shapes = [(0, 4), (3, 0), (3, 4)], [(3, 3), (2, 4), (2, 3)]
    whole = torch.arange(35.0).reshape(5, 7) + 1
    whole[:3, :4] = 0
    (y, x), (n, m) = starts[rank], shapes[rank]
    exchange = Exchange((n, m), 1, start=(y, x), boundary=("closed", "periodic"))
    wanted = halo_ranks.padded(whole, (1, 1), ("closed", "periodic"))[y : y + n + 2, x : x + m + 2]
    end([torch.equal(exchange(whole[y : y + n, x : x + m]), wanted), exchange.costs(itemsize=8, fields=2)])
"""


def test_sub_domains_of_land_are_left_out(tmp_path, mpi_name):
    found = run(3, tmp_path, HERE + LAND, mpi_name)
    assert [same for same, _ in found] == [True] * 3
    # two numbers of eight bytes; rank 0 sends two corner cells to rank 1 and a row of three to rank 2
    assert found[0][1] == [2, 16 * (2 + 3)]


CELL = """
    whole, rows = torch.arange(6.0, dtype=torch.float64), [slice(0, 2), slice(2, 3), slice(3, 6)]
    part = whole[rows[rank]]
    padded = Exchange(part.shape, 1, grid=(3,), boundary="closed")(part)
    net = torch.nn.ParameterList([torch.nn.Parameter(torch.full((4,), 5.0 * rank)[::2][:1])])
    ftn_pytorch.broadcast(net)
    ftn_pytorch.require_equal(net)
    narrow = Exchange(part.shape, 2, grid=(3,), boundary="closed")(part.bfloat16())
    end([padded.tolist(), net[0].tolist(), narrow.tolist()])
"""


def test_a_rank_may_have_one_cell(tmp_path, mpi_name):
    found = run(3, tmp_path, HERE + CELL, mpi_name)
    one = [[0, 0, 1, 2], [1, 2, 3], [2, 3, 4, 5, 0]]
    two = [[0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 4], [1, 2, 3, 4, 5, 0, 0]]
    assert found == [[each, [0.0], wide] for each, wide in zip(one, two)]


RECORDED = """
    from ftn_pytorch.system import extension
    (plain, _), (kept, step) = (halo_ranks.trained(rank, size, keeps) for keeps in (False, True))
    end([plain == kept, step.recording.is_ready or extension.obstacle() or step.recording.obstacle])
"""


@pytest.mark.parametrize("size", [2, 4])
def test_a_recorded_step_has_the_bits_of_a_plain_one(tmp_path, mpi_name, size):
    assert run(size, tmp_path, HERE + RECORDED, mpi_name) == [[True, True]] * size


APART = """
    exchange = Exchange((2, 2), 1, grid=(2, 1))
    step = failed_calls.Counted(lambda x: exchange(x).sum() / x.sum())
    step(torch.ones(2, 2))
    def fails(x):
        raise ValueError("early")
    if rank == 1:
        exchanges, step._function = step._function, fails
        told(step, torch.ones(2, 2))
        step._function = exchanges
    leave(told(step, torch.ones(2, 2)), 0, 1)
"""


def test_ranks_in_different_calls_are_told(tmp_path, mpi_name):
    for status, text in run(2, tmp_path, HERE + APART, mpi_name, expect=None):
        assert status == "PYTHON" and "the ranks are in different calls of it: rank" in text


UNLIKE = """
    exchange = Exchange((2, 2), 1, grid=(3, 1))
    answers = []
    def pair(*ways):
        # the ranks 0 and 1 are apart; rank 2 speaks to rank 1 alone, and goes on
        answers.append(told(ways[0] if rank == 0 else ways[1]))
        answers[-1] = answers[-1] if isinstance(answers[-1], list) else None
    one = torch.ones(2, 2)
    pair(lambda: exchange(one), lambda: exchange(one, one))
    pair(lambda: exchange(one.expand(200, 2, 2)), lambda: exchange(one))
    pair(lambda: exchange(one.double()), lambda: exchange(one, one))
    pair(lambda: exchange(one.double()), lambda: exchange(one.long()))
    x = one.clone().requires_grad_()
    out = exchange(x)
    pair(lambda: exchange(one), lambda: out.sum().backward())
    last = exchange(one * rank)
    leave([*answers, last[0].tolist()], 0, 1, 2)
"""


def test_ranks_that_exchange_other_things_are_told_and_no_others(tmp_path, mpi_name):
    zero, one, two = run(3, tmp_path, HERE + UNLIKE, mpi_name, expect=None)
    for answers in (zero, one):
        assert [status for status, _ in answers[:5]] == ["FORMAT"] * 4 + ["PYTHON"]
    assert "gives 2 numbers for each cell and rank 0 1" in zero[0][1]
    assert "rank 1 in number 6, in backward, and rank 0 in number 6, forward" in zero[4][1]
    assert two[:4] == [None] * 4 and two[5] == [0, 1, 1, 0]
    assert [answers[5] for answers in (zero, one)] == [[0] * 4, [0] * 4]


REFUSED = """
    answers = [told(Exchange, (2 + rank, 2), 1, grid=(1, 2)), told(Exchange, (2, 2), 1 + rank, grid=(2, 1)),
               told(Exchange, (2, 2), 1), told(Exchange, (2, 2), 1, start=(rank, 0)),
               told(Exchange, (2, 2), 1, **({"grid": (2, 1)} if rank else {"start": (0, 0)})),
               told(Exchange, (2, 2)[rank:], 1, boundary="closed")]
    exchange = Exchange((2, 2), 1, grid=(2, 1))
    exchange._neighbours._graph.timeout = 1
    answers.append(told(exchange, torch.ones(2, 2)) if rank == 0 else None)
    leave(answers, 0, 1)
"""


def test_what_does_not_fit_is_refused_on_all_ranks(tmp_path, mpi_name):
    texts = [
        "rank 1 has 3 cells along axis 0, and others in its row of the grid (1, 2) have 2",
        "rank 1 has width=[2, 2], and rank 0 width=[1, 1]",
        "2 ranks need grid=",
        "ranks 0 and 1 have cells in common",
        "rank 1 has grid=[2, 1], and rank 0 grid=None",
        "rank 1 has width=[1], and rank 0 width=[1, 1]",
    ]
    for answers in run(2, tmp_path, HERE + REFUSED, mpi_name, expect=None):
        assert [status for status, _ in answers[:6]] == ["FORMAT", "FORMAT", "ARGUMENT", "FORMAT", "FORMAT", "FORMAT"]
        for text, (_, found) in zip(texts, answers):
            assert text in found
        if answers[6]:
            assert answers[6][0] == "PYTHON" and "has waited 1 s in Exchange for the others" in answers[6][1]


GROUP = """
    from ftn_pytorch import init_process_group
    init_process_group()
    found = halo_ranks.differences(rank, (2, 1), [5, 4], [6], ("reflected", "periodic"), total)
    end(found)
"""


def test_a_process_group_that_was_there_exchanges(tmp_path, mpi_name):
    for differences in run(2, tmp_path, HERE + GROUP, mpi_name):
        assert max(differences) < 1e-12
