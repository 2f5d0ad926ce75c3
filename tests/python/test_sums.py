# SPDX-License-Identifier: MIT
"""Sums and averages by a real MPI: types, counters of calls, ranks that fail, end, or do not come."""

import pytest

from mpi_ranks import implementations, run

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parametrize("mpi_name", implementations())

TYPES = """
    for kind in ("float16", "bfloat16", "float32", "float64", "int64", "complex64", "complex128"):
        dtype = getattr(torch, kind)
        for shape in ((), (0,), (3, 1000)):
            whole = [torch.randint(-9, 9, shape, generator=torch.Generator().manual_seed(each)) for each in range(size)]
            x, expected = whole[rank].to(dtype), sum(whole).to(dtype)
            before = x.clone()
            for each, whole_of in ((x, expected), (x.mT, expected.mT)) if x.ndim == 2 else ((x, expected),):
                found = sums.combined(ours, sums.real(each), "sum", 2, "a test")
                assert torch.equal(found, sums.real(whole_of)), kind
            assert torch.equal(x, before)
            if kind != "int64":
                mean = sums.operator()(x, sums.number_of(ours, 1))
                assert mean.dtype == dtype and torch.allclose(mean, (sum(whole) / size).to(dtype)), kind
    texts = ours.gather(chr(945) * rank, purpose="a test")
    assert texts == [chr(945) * each for each in range(size)]
    assert ours.gather("", purpose="a test") == [""] * size
    end(told(sums.combined, ours, torch.zeros(2, dtype=torch.int32), "sum", 2, "a test") if size > 1 else None)
"""


@pytest.mark.parametrize("size", [1, 3])
def test_types_and_shapes(tmp_path, mpi_name, size):
    for found in run(size, tmp_path, TYPES, mpi_name):
        assert found is None if size == 1 else found[0] == "DTYPE" and "not of int32" in found[1]


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
    from ftn_pytorch.system import extension

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


PASSED_OVER = """
    from ftn_pytorch import recorded
    from ftn_pytorch.system import extension

    def train(record, fails, calls=30, alike=False):
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)

        def inner(x):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            average_gradients(net)
            optimizer.step()

        inner = recorded(inner) if record else inner
        number = 0

        def ftn_pytorch_train(x):
            if number in fails and (alike or rank == size - 1):
                raise ZeroDivisionError
            inner(x)
            if number == 3 and rank == 1:
                raise KeyError  # after the average: nothing is shifted

        train = failed_calls.Counted(ftn_pytorch_train)
        for number in range(calls):
            before = net.weight.detach().clone()
            try:
                train(torch.full((4, 3), float(rank + 1)))
            except (ZeroDivisionError, KeyError):
                continue
            except Exception as failure:
                assert torch.equal(net.weight, before)
                return [number, *errors.describe(failure, "")]
        return None

    found = []
    for record in [False, True][: 1 if extension.obstacle() else 2]:
        assert train(record, (8, 20), alike=True) is None
        found.append(train(record, (18,), 30 + (rank == size - 1)))
    found.append(train(False, (0,), 30 + (rank == size - 1)))

    # another network of the same size
    one, two = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    for each in (one, two):
        each.grad = torch.ones(2)
        average_gradients([each])
    found.append([0, *told(average_gradients, [[one, two][rank == 0]])])
    assert one.grad.tolist() == [1, 1]
    end(found)
"""


@pytest.mark.parametrize("size", [2, 4])
def test_an_error_that_one_rank_passes_over_is_told_to_all(tmp_path, mpi_name, size):
    """The last rank fails before it averages, and goes on: its next call meets the one that the others wait in."""
    for rank, found in enumerate(run(size, tmp_path, PASSED_OVER, mpi_name)):
        *passed_over, first, network = found
        is_last = rank == size - 1
        for place, (call, status, text) in enumerate([*passed_over, first]):
            assert (call, status) == ((0 if place == len(passed_over) else 18) + is_last, "PYTHON")
            assert f"different calls of it: rank {size - 1} is 1 ahead of rank 0. As a rule" in text
        assert network[1] == "PYTHON" and "different calls" in network[2]


MISSING = """
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    average_gradients([weight])
    ours.timeout = 3
    answer = None
    if rank != 1:
        answer = [told(average_gradients, [weight]), weight.grad.tolist()]
        answer.append(told(average_gradients, [weight]))
    leave(answer, 0, 2)
"""


def test_a_rank_that_does_not_come(tmp_path, mpi_name):
    answers = run(3, tmp_path, MISSING, mpi_name, expect=None)
    for rank, (failure, gradient, again) in [(0, answers[0]), (2, answers[2])]:
        assert failure[0] == again[0] == "PYTHON" and gradient == [1, 1]
        assert f"rank {rank} of 3 has waited 3 s in average_gradients for the others" in failure[1]
        assert "cannot be done any more: earlier," in again[1]


INTERRUPTED = """
    import signal

    def interrupt(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    answer = None
    if rank == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            ours.gather("mine", purpose="a test")
        except KeyboardInterrupt:
            answer = told(ours.gather, "mine", purpose="another test")
    leave(answer, 0)
"""


def test_handlers_of_signals_run_while_a_rank_waits(tmp_path, mpi_name):
    status, text = run(2, tmp_path, INTERRUPTED, mpi_name, expect=None)[0]
    assert status == "PYTHON" and text.startswith("another test cannot be done any more: earlier, a test was interr")


ENDED = """
    from ftn_pytorch import recorded
    net = torch.nn.Linear(3, 1)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(1)

    @recorded
    def step(x):
        net.zero_grad()
        net(x).sum().backward()
        average_gradients(net)

    for _ in range(12):
        step(torch.ones(2, 3))
    if rank == 2:
        os.kill(os.getpid(), 9)
    leave(told(step, torch.ones(2, 3)), 0, 1)
"""


def test_a_rank_that_is_killed(tmp_path, mpi_name):
    """MPICH may end the others, whatever its launcher is told; Open MPI can be told not to."""
    options = {"Open MPI": ("--enable-recovery",), "MPICH": ("-disable-auto-cleanup",)}[mpi_name]
    answers = run(3, tmp_path, ENDED, mpi_name, options, expect=None)
    assert len(answers) in ((2,) if mpi_name == "Open MPI" else (0, 2))
    for status, text in answers:
        assert status == "PYTHON", text
        assert "rank 2 of 3, process" in text and "has ended while rank" in text


UNLIKE = """
    def network(sizes):
        torch.manual_seed(0)
        made = torch.nn.Sequential(torch.nn.Linear(3, sizes[0]), torch.nn.Linear(sizes[0], 1))
        for parameter in made.parameters():
            parameter.grad = torch.full_like(parameter, rank)
        return made

    found = [told(average_gradients, network([4 + (rank == 1)]))]
    unlike = network([4])
    with torch.no_grad():
        unlike[1].bias += rank
    before = unlike[1].bias.grad.clone()
    found += [told(average_gradients, unlike), torch.equal(unlike[1].bias.grad, before)]
    weighted = network([4])
    found.append(told(average_gradients, weighted, samples=3 * rank))
    found.append(weighted[0].bias.grad.tolist())
    found.append(told(average_gradients, weighted, samples=0))
    found.append(float(weighted[0].bias.grad.abs().sum()))
    table = torch.nn.Embedding(3, 1, sparse=True)
    with torch.no_grad():
        table.weight.fill_(0)
    if rank:
        table(torch.tensor([1, 1, 2])).sum().backward()
    found.append(told(average_gradients, table) or table.weight.grad.flatten().tolist())
    found.append(torch.distributed.is_initialized())
    end(found)
"""


def test_unlike_networks_and_numbers_of_samples(tmp_path, mpi_name):
    first, second = run(2, tmp_path, UNLIKE, mpi_name)
    assert first == second
    shapes, numbers, is_left, weighted, gradient, none, zero, table, group = first
    assert shapes[0] == numbers[0] == "FORMAT" and is_left
    assert "do not average the same parameters: rank 1 differs from rank 0 in 0.weight, 0.bias, 1.weight" in shapes[1]
    assert "do not begin with the same network: rank 1 differs from rank 0 in 1.bias" in numbers[1]
    assert weighted is None and gradient == [1.0] * 4, "all samples are those of rank 1"
    assert none is None and zero == 0
    assert table == [0.0, 1.0, 0.5] and not group
