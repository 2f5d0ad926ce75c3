# SPDX-License-Identifier: MIT
"""all_reduce_mean and broadcast by a real MPI: bits, recordings, what is refused."""

import pytest

from mpi_ranks import implementations, run

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parametrize("mpi_name", implementations())
SIZES = [1, 2, 3, 5, pytest.param(16, marks=pytest.mark.slow)]

MEANS = """
    from ftn_pytorch import all_reduce_mean
    # whole numbers, whose sums are exact in any order
    whole = [torch.randint(-999, 999, (7, 3), generator=torch.Generator().manual_seed(each)) for each in range(size)]
    x = whole[rank].double().requires_grad_()
    mean = all_reduce_mean(x)
    right = torch.equal(mean, sum(whole).double() / size) and not mean.requires_grad and mean.shape == x.shape
    number = all_reduce_mean(torch.tensor(float(rank)))
    right = right and number.ndim == 0 and float(number) == (size - 1) / 2
    torch.manual_seed(rank)
    any_bits = all_reduce_mean(torch.randn(1000, dtype=torch.float64) * 10.0 ** torch.randint(-9, 9, (1000,)))
    texts = ours.gather(any_bits.numpy().tobytes().hex(), purpose="a test")
    refused = told(all_reduce_mean, torch.ones(2, dtype=torch.int64))
    end([right, len(set(texts)) == 1, refused])
"""


@pytest.mark.parametrize("size", SIZES)
def test_means_are_exact_and_the_same_bits_on_all_ranks(tmp_path, mpi_name, size):
    for right, same, refused in run(size, tmp_path, MEANS, mpi_name):
        assert right and same
        assert refused[0] == "DTYPE" and "torch.int64" in refused[1]


RECORDED = """
    from ftn_pytorch import all_reduce_mean, recorded
    from ftn_pytorch.system import extension

    def step(x):
        return all_reduce_mean(x.square().mean())

    kept = recorded(step)
    same, before = True, ours.calls[0]
    for each in range(12):
        x = torch.full((4,), float(rank + each), dtype=torch.float64)
        same = same and float(kept(x)) == sum((other + each) ** 2 for other in range(size)) / size
    exchanges = ours.calls[0] - before
    end([same, exchanges, kept.recording.is_ready or bool(extension.obstacle())])
"""


@pytest.mark.parametrize("size", [2])
def test_mean_is_an_operation_of_a_recording(tmp_path, mpi_name, size):
    assert run(size, tmp_path, RECORDED, mpi_name) == [[True, 12, True]] * size


APART = """
    from ftn_pytorch import all_reduce_mean

    def mean(fails):
        if fails:
            raise ValueError
        return float(all_reduce_mean(torch.ones(1)))

    counted = failed_calls.Counted(mean)
    counted(False)
    second = told(counted, rank == 1)
    end(told(counted, False) if rank == 1 else second)
"""

BROADCAST = """
    from ftn_pytorch import average_gradients, broadcast, require_equal
    torch.manual_seed(rank)
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5)).double()
    net.register_buffer("odd", torch.randn(3).half())
    net.register_buffer("none", torch.zeros(0))
    net.register_buffer("turned", torch.randn(4, 3).t())
    first = {name: ours.gather(each.contiguous().view(torch.uint8).numpy().tobytes().hex() if each.numel() else "",
                               purpose="a test")[0] for name, each in net.state_dict().items() if each.ndim}
    before = told(require_equal, net)
    communicator._MOST_WORDS = 8
    broadcast(net)
    after = {name: each.contiguous().view(torch.uint8).numpy().tobytes().hex() if each.numel() else ""
             for name, each in net.state_dict().items() if each.ndim}
    require_equal(net)
    net[0].weight.sum().backward()
    average_gradients(net)
    end([before, after == first])
"""


@pytest.mark.parametrize("size", SIZES)
def test_all_ranks_have_the_network_of_rank_0(tmp_path, mpi_name, size):
    for before, same in run(size, tmp_path, BROADCAST, mpi_name):
        assert same and (before is None if size == 1 else before[0] == "FORMAT")


FORMS = """
    from ftn_pytorch import broadcast
    net = torch.nn.Sequential(torch.nn.Linear(3, 5 if rank == 1 else 4), torch.nn.Linear(2, 2))
    before = [each.clone() for each in net.parameters()]
    found = told(broadcast, net)
    lazy = told(broadcast, torch.nn.LazyLinear(2))
    sparse = told(broadcast, [torch.eye(2).to_sparse()])
    end([found, lazy, sparse, all(map(torch.equal, before, net.parameters()))])
"""


def test_other_forms_are_refused_by_name_and_nothing_is_changed(tmp_path, mpi_name):
    for found, lazy, sparse, same in run(3, tmp_path, FORMS, mpi_name):
        assert same
        assert found[0] == "FORMAT" and "rank 1 differs from rank 0 in 0.weight, 0.bias" in found[1]
        assert lazy[0] == "ARGUMENT" and "weight has no shape before the first forward" in lazy[1]
        assert sparse[0] == "ARGUMENT" and "tensor 1 is sparse" in sparse[1]


def test_ranks_in_different_calls_are_told_apart(tmp_path, mpi_name):
    for status, text in run(2, tmp_path, APART, mpi_name):
        assert status == "PYTHON" and text.startswith("all_reduce_mean: the ranks are in different calls of it: rank")


GROUP = """
    from ftn_pytorch import all_reduce_mean, broadcast, init_process_group
    init_process_group()
    mean = all_reduce_mean(torch.full((3,), float(rank), dtype=torch.float64))
    net = [torch.full((3,), rank + 0.5).half(), torch.full((2,), rank)]
    broadcast(net)
    tell([mean.tolist(), net[0].tolist(), net[1].tolist()])
"""


SAVED = """
    from ftn_pytorch import init_process_group, recorded, save_recording
    init_process_group()
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 1)

    def step(x):
        net.zero_grad(set_to_none=False)
        net(x).sum().backward()
        average_gradients(net)
        return net.weight.grad.clone()

    kept = recorded(step)
    for _ in range(12):
        kept(torch.ones(2, 2))
    tell(told(save_recording, os.path.join(FOLDER, f"{rank}.ftr"), {"step": kept}, {"net": net}))
"""


def test_what_a_process_group_averages_cannot_be_saved_and_is_told_as_such(tmp_path, mpi_name):
    for status, text in run(2, tmp_path, SAVED, mpi_name, expect=None):
        assert status == "HOOK" and "averages over a process group of torch.distributed" in text
        assert "that makes none (init_process_group)" in text


STAYS = """
    from ftn_pytorch import all_reduce_mean, init_process_group, recorded
    kept = recorded(lambda x: all_reduce_mean(x * 2))
    x = torch.full((3,), float(rank))
    if rank == 0:  # this rank alone makes its recording after the others
        kept = all_reduce_mean
    for _ in range(4):
        first = kept(x * (2 if rank == 0 else 1))
    init_process_group()
    calls = ours.calls[0]
    for _ in range(4):
        second = all_reduce_mean(x * 2) if rank == 0 else kept(x)
    tell([first.tolist(), second.tolist(), ours.calls[0] - calls])
"""


def test_what_began_by_mpi_stays_so(tmp_path, mpi_name):
    """Otherwise a recording of one rank would wait for others that have gone over to the process group."""
    assert run(2, tmp_path, STAYS, mpi_name, expect=None) == [[[1.0] * 3, [1.0] * 3, 4]] * 2


NOT_RECORDED = """
    from ftn_pytorch import broadcast, recorded
    net = torch.nn.Linear(2, 2)

    def step(x):
        net.weight.data += rank + 1
        broadcast(net)
        return net.weight.detach() * x

    kept = recorded(step)
    found = [kept(torch.ones(2, 2)).tolist() for _ in range(6)]
    texts = ours.gather(json.dumps(found), purpose="a test")
    end([len(set(texts)), kept.recording.is_ready, kept.recording.obstacle])
"""


def test_broadcast_is_not_recorded(tmp_path, mpi_name):
    for texts, is_ready, obstacle in run(2, tmp_path, NOT_RECORDED, mpi_name):
        assert texts == 1 and not is_ready
        assert "it calls ftn_pytorch.broadcast, which writes into the network what other ranks send" in obstacle


def test_the_process_group_is_taken_where_there_is_one(tmp_path, mpi_name):
    assert run(2, tmp_path, GROUP, mpi_name, expect=None) == [[[0.5] * 3, [0.5] * 3, [0, 0]]] * 2
