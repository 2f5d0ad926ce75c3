# SPDX-License-Identifier: MIT
"""Sums and averages by a real MPI: types, pieces, counters of calls, ranks that fail, end, or do not come."""

import pytest

from mpi_ranks import implementations, run

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parametrize("mpi_name", implementations())

TYPES = """
    import numpy
    found = {}
    sums.PIECE_BYTES = 1 << 10
    for kind in ("float16", "bfloat16", "float32", "float64", "int64", "complex64", "complex128"):
        dtype = getattr(torch, kind)
        for shape in ((), (0,), (3, 1000)):
            whole = [torch.randint(-9, 9, shape, generator=torch.Generator().manual_seed(each)) for each in range(size)]
            x, expected = whole[rank].to(dtype), sum(whole).to(dtype)
            before = x.clone()
            assert torch.equal(sums.allreduce(ours, x, "a test"), expected), kind
            assert torch.equal(sums.allreduce(ours, x.mT if x.ndim > 1 else x, "a test"), expected.mT if x.ndim > 1 else expected)
            assert torch.equal(x, before)
            if kind != "bfloat16":
                again = sums.allreduce(ours, x.numpy(), "a test")
                assert again.dtype == x.numpy().dtype and numpy.array_equal(again, expected.numpy()), kind
            if kind != "int64":
                mean = sums.operator()(x, sums.number_of(ours, 1))
                assert mean.dtype == dtype and torch.allclose(mean, (sum(whole) / size).to(dtype)), kind
    texts = ours.gather(chr(945) * rank, purpose="a test")
    assert texts == [chr(945) * each for each in range(size)]
    assert ours.gather("", purpose="a test") == [""] * size
    end(told(sums.allreduce, ours, torch.zeros(2, dtype=torch.int32), "a test"))
"""


@pytest.mark.parametrize("size", [1, 3])
def test_types_shapes_and_pieces(tmp_path, mpi_name, size):
    for status, text in run(size, tmp_path, TYPES, mpi_name):
        assert status == "DTYPE" and "not of int32" in text


BITS = """
    torch.manual_seed(rank)
    found = []
    for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        for count in (1, 7, 1000, 300_000):
            x = torch.randn(count, dtype=kind) * 10.0 ** torch.randint(-3, 3, (count,)).to(kind)
            mean = sums.operator()(x, sums.number_of(ours, 1))
            found += ours.gather(__import__("hashlib").sha256(mean.view(torch.uint8).numpy()).hexdigest(), purpose="t")
    end(all(len(set(found[i : i + size])) == 1 for i in range(0, len(found), size)))
"""


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_bits_are_the_same_on_all_ranks(tmp_path, mpi_name, size):
    assert run(size, tmp_path, BITS, mpi_name) == [True] * size


TRAINING = """
    from ftn_pytorch import recorded, require_equal
    from ftn_pytorch.recording import extension

    def train(record):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
        unused, single = torch.nn.Linear(2, 2), torch.nn.Linear(1, 1)
        parameters = [*net.parameters(), *unused.parameters(), *single.parameters()]
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)
        x = torch.randn(8, 3, dtype=torch.float64)[rank::size]

        def step(x):
            optimizer.zero_grad()
            loss = (net(x) - x.sum(1, keepdim=True)).square().mean() + single(x[:1, :1].float()).sum()
            loss.backward()
            average_gradients(parameters)
            optimizer.step()
            return loss

        step = recorded(step) if record else step
        for _ in range(20):
            step(x)
        assert not record or step.recording.is_ready, step.recording.obstacle
        require_equal(parameters)
        return [parameter.tolist() for parameter in net.parameters()]

    before = ours.calls.copy()
    plain = train(False)
    counted = [count for count in ours.calls.values()]
    if not extension.obstacle():
        assert train(True) == plain, "recorded, the numbers are the same, bit for bit"
        assert sorted(ours.calls.values()) == sorted(counted + counted), "one exchange for each call"
    assert not torch.distributed.is_initialized()
    end(plain)
"""


def test_ranks_are_one_recorded_or_not(tmp_path, mpi_name):
    one, *others = (run(size, tmp_path, TRAINING, mpi_name) for size in (1, 2, 4))
    for ranks in others:
        assert all(each == ranks[0] for each in ranks)
        for a, b in zip(one[0], ranks[0]):
            assert torch.allclose(torch.tensor(a), torch.tensor(b), atol=1e-12)
