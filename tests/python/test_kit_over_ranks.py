# SPDX-License-Identifier: MIT
"""Parts of the kit over the ranks of a real MPI: the numbers of one rank with all samples, the same bits on all."""

import pytest

from mpi_ranks import implementations, run

torch = pytest.importorskip("torch")

SIZES = [1, pytest.param(2, marks=pytest.mark.slow), 3]
pytestmark = pytest.mark.parametrize("mpi_name", implementations())

# What ranks have is of different lengths, and some have nothing.
SHARES = """
    from ftn_pytorch.kit import Guard, LearntRange, Log, Normaliser

    def shares(number):
        random = torch.Generator().manual_seed(number)
        scale = torch.tensor([1e-3, 1.0, 1e4], dtype=torch.float64)
        x = (torch.randn(number % 5 * 30 + size, 3, generator=random, dtype=torch.float64) + 1e6) * scale
        has = [each for each in range(size) if (each + number) % 3 or size == 1]
        parts = iter(x.tensor_split(len(has))) if has else None
        return x[: len(x) if has else 0], [next(parts) if each in has else x[:0] for each in range(size)]

    def same(*tensors):
        bits = [each.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes().hex() for each in tensors]
        return len(set(ours.gather(json.dumps(bits), purpose="a test"))) == 1
"""

NORMALISER = (
    SHARES
    + """
    learnt, alone, exchanges = Normaliser(3, over_ranks=True), Normaliser(3, over_ranks=False), []
    learnt.update(torch.zeros(0, 3))
    before = ours.calls[0]
    for number in range(20):
        whole, parts = shares(number)
        learnt.update(parts[rank])
        alone.update(whole)
        exchanges.append(ours.calls[0] - before)
    right = all(torch.allclose(getattr(learnt, name), getattr(alone, name), rtol=1e-12 if name == "mean" else 1e-6,
                               atol=0) for name in ("mean", "std")) and torch.equal(learnt.count, alone.count)
    learnt.freeze(), alone.freeze()
    learnt.window = alone.window = 100
    for number in range(20):
        whole, parts = shares(number)
        learnt.update(parts[rank]), alone.update(whole)
    right = right and torch.allclose(learnt.drifted, alone.drifted, rtol=1e-3, atol=1e-9)
    alike = same(*learnt.state_dict().values())
    spoilt = parts[rank].clone()
    if rank == size - 1:
        spoilt = torch.full((2, 3), float("nan" if size == 3 else "inf"), dtype=torch.float64)
        spoilt[:, 0] = 0
    learnt.freeze(False)
    bits = [each.clone() for each in learnt.state_dict().values()]
    refused = told(learnt.update, spoilt)
    pairs = zip(bits, learnt.state_dict().values())
    right = right and all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)
    if rank == 0:
        learnt.mean += 1
    end([right, alike, exchanges[-1], refused, told(learnt.update, parts[rank])])
"""
)


@pytest.mark.parametrize("size", SIZES)
def test_statistics_are_those_of_one_rank_with_all_samples(tmp_path, mpi_name, size):
    for right, alike, exchanges, refused, other in run(size, tmp_path, NORMALISER, mpi_name):
        assert right and alike
        assert exchanges == 21, "one for each update, and one more for the first"
        assert refused[0] == "ARGUMENT" and "column 1, 2 of the inputs" in refused[1]
        if size > 1:
            assert other[0] == "FORMAT" and "Normaliser.update: the ranks do not mean the same" in other[1]


RANGE = (
    SHARES
    + """
    learnt, guard, alone = LearntRange(3, over_ranks=True), Guard(over_ranks=True), LearntRange(3)
    learnt.learn(torch.zeros(0, 3)), guard.learn_range(torch.zeros(0, 3))
    nothing = guard.counts is None and bool(guard.outside(torch.zeros(1, 3)))
    for number in range(12):
        whole, parts = shares(number)
        learnt.learn(parts[rank]), guard.learn_range(parts[rank]), alone.learn(whole)
    x = torch.linspace(0.999e6, 1.001e6, 101, dtype=torch.float64)[:, None] * torch.tensor([1e-3, 1, 1e4]).double()
    right = all(torch.equal(a, b) for a, b in zip(learnt.buffers(), alone.buffers()))
    right = right and torch.equal(guard.outside(x + rank), alone(x + rank)) and 0 < int(alone(x).sum()) < 101
    state = guard.state_dict()["_range"]
    right = right and state["counts"] is None and torch.equal(state["low"], alone.low)
    refused = [told(each, torch.full((2, 3), float(bad)) if rank == size - 1 else torch.zeros(0, 3))
               for each in (learnt.learn, guard.learn_range) for bad in ("nan", "inf", "-inf")]
    right = right and all(torch.equal(a, b) for a, b in zip(learnt.buffers(), alone.buffers()))
    end([nothing, right, same(*learnt.buffers()), refused])
"""
)


@pytest.mark.parametrize("size", SIZES)
def test_ranges_are_those_of_one_rank_with_all_samples(tmp_path, mpi_name, size):
    for nothing, right, alike, refused in run(size, tmp_path, RANGE, mpi_name):
        assert nothing and right and alike
        assert all(status == "ARGUMENT" and "not finite" in text for status, text in refused)


GUARD = """
    import warnings
    from ftn_pytorch.kit import Guard
    nan = float("nan")
    torch.manual_seed(0)
    net = torch.nn.Linear(1, 1)
    guard = Guard(net, over_ranks=True, patience=2, tolerated=0)
    # (loss of each rank, samples of each rank, the mean over all samples)
    cases = [([1.0, 3.0, 8.0], [1, 1, 2], 5.0), ([nan, 2.0, 4.0], [0, 3, 1], 2.5), ([nan, nan, nan], [0, 0, 0], None),
             ([2.0, nan, 2.0], [1, 1, 1], "not")]
    found = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for losses, samples, expected in cases:
            before = guard.skipped, guard.loss, guard.returns
            allows = guard.allows(torch.tensor(losses[rank]), samples=samples[rank])
            after = guard.skipped, guard.loss, guard.returns
            found.append(
                (not allows and before == after) if expected is None
                else (not allows and after[0] == before[0] + 1 and guard.loss != guard.loss) if expected == "not"
                else (allows and abs(guard.loss - expected) < 1e-12)
            )
    found.append(guard.returns == 1 and len(warned) == (rank == 0))
    found.append(guard.allows(float(rank)) and guard.loss == (size - 1) / 2)
    found.append([guard.score(each + rank) for each in (1.0, 2.0, 3.0)] == [False, False, True])
    found.append(guard.best == 1 + (size - 1) / 2)
    found.append(guard.score(nan, samples=0) and guard.best == 1 + (size - 1) / 2)
    texts = set(ours.gather(repr(guard.state_dict()), purpose="a test"))
    refused = told(guard.allows, 1.0, samples=-1 if rank else -2)
    if rank == 0:
        guard.skipped += 1
    end([found, len(texts), refused, told(guard.allows, 1.0)])
"""


def test_all_ranks_decide_alike(tmp_path, mpi_name):
    for found, texts, refused, other in run(3, tmp_path, GUARD, mpi_name):
        assert all(found), found
        assert texts == 1
        assert refused[0] == "ARGUMENT" and "it must be 0 or more" in refused[1]
        assert other[0] == "FORMAT" and "Guard.allows: the ranks do not mean the same" in other[1]


LOG = """
    import io, contextlib
    from ftn_pytorch.kit import Log
    os.chdir(FOLDER)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        log = Log("log.csv", over_ranks=True, console=0)
        for step in range(3):
            log.write(step, loss=torch.tensor(float(rank)), lr=0.5)
    log.flush()
    refused = [told(Log, "log%r.csv", over_ranks=True), told(log.write, 3, **{"loss" if rank else "held_out": 1.0})]
    state, lines = log.state_dict(), len(said.getvalue().splitlines())
    ours.gather("", purpose="a test")
    text, files = open("log.csv").read(), [each for each in os.listdir(".") if each.endswith("csv")]
    end([refused, state["step"], lines, text, files])
"""


def test_rank_0_writes_the_means(tmp_path, mpi_name):
    for rank, (refused, step, lines, text, files) in enumerate(run(3, tmp_path, LOG, mpi_name)):
        assert text == "step,loss,lr\n0,1.0,0.5\n1,1.0,0.5\n2,1.0,0.5\n" and files == ["log.csv"]
        assert step == 2 and lines == (2 if rank == 0 else 0)
        assert refused[0][0] == "ARGUMENT" and "one for each rank" in refused[0][1]
        assert (
            refused[1][0] == "FORMAT"
            and "rank 0 has step 3 with held_out, and rank 1 has step 3 with loss" in refused[1][1]
        )


NOT_SAID = """
    import warnings
    from ftn_pytorch.kit import Guard, LearntRange, Log, Normaliser
    os.chdir(FOLDER)

    def parts(**said):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            normaliser, guard, log = Normaliser(2, **said), Guard(**said), Log(f"log{rank}.csv", **said)
            learnt = LearntRange(2, **said)
            for _ in range(2):
                if rank == 0:  # nobody waits
                    normaliser.update(torch.ones(3, 2))
                    guard.allows(1.0), guard.score(1.0), guard.learn_range(torch.ones(1, 2))
                    learnt.learn(torch.ones(1, 2))
                    log.write(1, loss=1.0)
                    Log("rank%r.csv").write(1, loss=1.0), Log().write(1, loss=1.0)
        return [str(each.message) for each in warned]

    end([parts(), parts(over_ranks=False), ours.calls[0]])
"""


def test_what_nobody_has_said_is_worth_one_warning_and_waits_for_nobody(tmp_path, mpi_name):
    (first, second, calls), other = run(2, tmp_path, NOT_SAID, mpi_name)
    assert (second, calls, other) == ([], 0, [[], [], 0])
    own = ("statistics of its own", "on its own loss", "on its own score", "a range of its own")
    whats = [*own, own[-1], "the file by itself"]
    assert len(first) == len(whats)
    for text, what in zip(first, whats):
        assert "each of the 2 ranks" in text and what in text and "over_ranks=True" in text


THREAD = """
    from ftn_pytorch import init_process_group
    from ftn_pytorch.kit import Background, Normaliser
    normaliser = Normaliser(1, over_ranks=True)

    def step(x):
        normaliser.update(x)
        return 0.0

    background = Background(step)
    background.submit(torch.full((2, 1), float(rank)))
    refused = told(background.flush)
    init_process_group()
    other = Background(lambda x: (normaliser.update(x), 0.0)[1])
    other.submit(torch.full((2, 1), float(rank)))
    other.flush()
    tell([refused, normaliser.mean.tolist(), normaliser.count.item()])
"""


def test_a_thread_needs_a_process_group(tmp_path, mpi_name):
    for refused, mean, count in run(2, tmp_path, THREAD, mpi_name, expect=None):
        assert refused[0] == "ARGUMENT" and "a thread of the script cannot call MPI" in refused[1]
        assert "Normaliser.update" in refused[1] and "init_process_group() in ftn_pytorch_setup" in refused[1]
        assert (mean, count) == ([0.5], 4)


RECORDED = """
    from ftn_pytorch import recorded
    from ftn_pytorch.kit import Guard, Normaliser
    from ftn_pytorch.system import extension
    normaliser, guard = Normaliser(2, over_ranks=True), Guard(over_ranks=True)

    def step(x):
        return torch.where(guard.outside(x)[:, None], 0.0, normaliser(x))

    kept, same = recorded(step), True
    for number in range(12):
        x = torch.full((3, 2), float(rank + number), dtype=torch.float64)
        normaliser.update(x)
        guard.learn_range(x[:1] if number % 2 else x[:0])
        same = same and torch.equal(kept(2 * x), step(2 * x))
    end([same, kept.recording.is_ready or bool(extension.obstacle()), kept.recording.obstacle])
"""


def test_recorded_functions_go_on_with_what_is_learnt(tmp_path, mpi_name):
    for same, is_ready, obstacle in run(2, tmp_path, RECORDED, mpi_name):
        assert same and is_ready, obstacle
