# SPDX-License-Identifier: MIT
"""Threads that record, check and run recorded functions at the same time."""

import copy
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording import comparison, footprints, reads  # noqa: E402

nn = torch.nn
THREADS = 4

# While other threads change what a function uses, its recording may be postponed, and a warning says so.
pytestmark = [pytest.mark.usefixtures("extension"), pytest.mark.filterwarnings("ignore:.*is not recorded yet")]


@pytest.fixture(autouse=True)
def hasty():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*bodies):
    """Run these in threads of their own; what one of them raises is raised."""
    failures = []

    def run(body):
        try:
            body()
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def made(seed):
    """A step with a network of its own; not one number is drawn."""
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).reshape(parameter.shape) / (seed + 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@pytest.mark.parametrize("round", range(2))
def test_each_thread_records_a_step_of_its_own(round):
    x, calls = torch.ones(8, 4), 60
    steps = [recorded(made(seed)) for seed in range(THREADS)]
    found = [[] for _ in steps]

    def run(number):
        for _ in range(calls):
            found[number].append(steps[number](x).item())

    together(*[lambda number=number: run(number) for number in range(THREADS)])
    for number, step in enumerate(steps):
        assert not step.recording.obstacle
        plain = made(number)
        assert found[number] == [plain(x).item() for _ in range(calls)]


def test_optimizers_of_other_threads_go_on_while_one_records():
    x, is_done = torch.ones(8, 4), threading.Event()
    others = [made(seed) for seed in range(THREADS - 1)]

    def train(step):
        while not is_done.is_set():
            step(x)

    def record():
        try:
            for seed in range(12):
                step = recorded(made(seed))
                for _ in range(7):
                    step(x)
                assert step.recording.is_ready, step.recording.obstacle
        finally:
            is_done.set()

    together(record, *[lambda step=step: train(step) for step in others])


def test_threads_share_a_function():
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    apply = recorded(lambda x: net(x))
    inputs = [torch.full((8, 4), float(number)) for number in range(THREADS)]
    expected = [net(x).detach() for x in inputs]
    wrong = []

    def run(number):
        for _ in range(200):
            if not torch.equal(apply(inputs[number]), expected[number]):
                wrong.append(number)

    together(*[lambda number=number: run(number) for number in range(THREADS)])
    assert not wrong and apply.recording.is_ready


def test_a_function_that_calls_itself_is_called_as_often_as_written():
    def power(x, n):
        return x if n == 0 else power(x * 2, n - 1)

    power = recorded(power)
    for _ in range(9):
        assert power(torch.ones(1), 3).item() == 8


class Fields:
    n = 0


class Slots:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0


def counting_in_a_closure():
    n = 0

    def step(x):
        nonlocal n
        n += 1
        return x * 2

    def add():
        nonlocal n
        n += 1

    return step, add, lambda: n


def counting_in_an_object(kind):
    each = kind()

    def step(x):
        each.n += 1
        return x * 2

    def add():
        each.n += 1

    return step, add, lambda: each.n


def counting_in_a_dict():
    counts = {"n": 0}

    def step(x):
        counts["n"] += 1
        return x * 2

    def add():
        counts["n"] += 1

    return step, add, lambda: counts["n"]


WAYS_TO_COUNT = {
    "closure": counting_in_a_closure,
    "fields": lambda: counting_in_an_object(Fields),
    "slots": lambda: counting_in_an_object(Slots),
    "dict": counting_in_a_dict,
}


@pytest.mark.parametrize("way", WAYS_TO_COUNT)
def test_what_others_add_while_a_call_is_recorded_stays(way, monkeypatch):
    """Another thread adds whenever the recorder looks at something, which is when Python lets others in. The function
    is recorded once that has ended."""
    step, add, count = WAYS_TO_COUNT[way]()
    step, added = recorded(step), 0

    def others():
        nonlocal added
        other.submit(add).result()
        added += 1

    note = footprints.Footprints._note
    monkeypatch.setattr(footprints.Footprints, "_note", lambda *of: (others(), note(*of), others())[1])
    with ThreadPoolExecutor(1) as other:
        for _ in range(8):
            step(torch.ones(2))
    assert added and count() == 8 + added
    monkeypatch.undo()
    for _ in range(20):
        step(torch.ones(2))
    assert step.recording.is_ready, step.recording.obstacle


def test_threads_add_to_objects_that_somebody_looks_at():
    each, start = Fields(), threading.Barrier(THREADS)

    def add():
        start.wait()
        for _ in range(50_000):
            each.n += 1

    with reads.Reads(lambda value, name: True) as looking:
        looking.look_at(each)
        together(*[add] * THREADS)
    assert each.n == 50_000 * THREADS


@pytest.mark.parametrize("way", WAYS_TO_COUNT)
def test_what_others_add_while_a_call_is_checked_stays(way, monkeypatch):
    """Another thread adds before and after the function. That shows nothing of the function."""
    step, add, count = WAYS_TO_COUNT[way]()
    step = recorded(step)
    look, added = comparison.State.__init__, 0

    def look_later(*of):
        nonlocal added
        other.submit(add).result()
        added += 1
        look(*of)

    monkeypatch.setattr(comparison.State, "__init__", look_later)
    with ThreadPoolExecutor(1) as other:
        other.submit(int).result()
        for _ in range(12):
            step(torch.ones(2))
    assert added and count() == 12 + added and not step.recording.obstacle
    monkeypatch.undo()
    for _ in range(20):
        step(torch.ones(2))
    assert step.recording.is_ready and count() == 32 + added


@pytest.mark.parametrize("way", WAYS_TO_COUNT)
def test_threads_that_count_lose_nothing(way):
    """What is asked of a count before a run, and what the run adds to it, are one step."""
    step, _, count = WAYS_TO_COUNT[way]()
    step = recorded(step)
    for _ in range(30):
        step(torch.ones(2))
    assert step.recording.is_ready
    together(*[lambda: [step(torch.ones(2)) for _ in range(100)]] * THREADS)
    assert count() == 30 + 100 * THREADS


def test_threads_that_count_and_branch_lose_nothing():
    calls, tens = 0, 0

    @recorded
    def step(x):
        nonlocal calls, tens
        calls += 1
        if calls % 10 == 0:
            tens += 1
        return x * 2

    for _ in range(30):
        step(torch.ones(2))
    assert step.recording.is_ready and (calls, tens) == (30, 3)
    together(*[lambda: [step(torch.ones(2)) for _ in range(100)]] * THREADS)
    assert calls == 30 + 100 * THREADS


last = torch.zeros(3)


def test_runs_that_do_not_count_wait_for_nobody():
    """They leave a tensor in a name, as plain calls of two threads do: whoever is last. Only counts are held on to."""

    @recorded
    def leaves(x):
        global last
        last = x + last * 0.5
        return last.sum()

    for _ in range(12):
        leaves(torch.ones(3))
    assert leaves.recording.is_ready, leaves.recording.obstacle
    done = threading.Event()
    thread = threading.Thread(target=lambda: (leaves(torch.ones(3)), done.set()))
    with leaves.recording._turn:
        thread.start()
        is_done = done.wait(60)
    thread.join()
    assert is_done


def beside(body, *others):
    """Run ``body``, and meanwhile these again and again in threads of their own."""
    done = threading.Event()

    def again(other):
        while not done.is_set():
            other()

    def once():
        try:
            body()
        finally:
            done.set()

    together(once, *[lambda other=other: again(other) for other in others])


def made_with_rate():
    """A step whose optimizer has numbers that other threads look at."""
    net, x = nn.Linear(4, 2), torch.ones(8, 4)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step():
        net(x).square().sum().backward()
        optimizer.step()

    return recorded(step), optimizer.param_groups[0]


def test_other_threads_read_the_numbers_of_an_optimizer_as_they_are_while_its_step_is_recorded():
    """A trial step has other numbers, and the one that is recorded has numbers that are traced."""
    seen = set()
    for _ in range(5):
        step, group = made_with_rate()

        def read(group=group):
            rate = group["lr"]
            seen.add((float(rate), rate > 1e-3, type(rate * 2), type(copy.copy(rate)), group["betas"] == (0.9, 0.999)))

        beside(lambda step=step: [step() for _ in range(8)], read)
        assert step.recording.is_ready, step.recording.obstacle
    assert seen == {(1e-3, False, float, float, True)}


@pytest.mark.filterwarnings("ignore:.*is not recorded")
def test_what_other_threads_set_in_an_optimizer_stays_while_its_step_is_recorded():
    sent, lost = 0, []
    for _ in range(5):
        step, group = made_with_rate()

        def write(group=group):
            nonlocal sent
            sent += 1
            group["weight_decay"] = sent * 1e-9
            time.sleep(0)
            if group["weight_decay"] != sent * 1e-9:
                lost.append(sent)

        beside(lambda step=step: [step() for _ in range(8)], write)
    assert sent and not lost


def test_what_another_thread_writes_beside_a_function_in_one_tensor_stays():
    """A comparison takes back what the function has written, not all of the memory."""
    table, written, x = torch.zeros(2, 100_000), 0, torch.ones(3)

    @recorded
    def count():
        table[0].add_(1)
        return x.sum()

    row = table[1]

    def write():
        nonlocal written
        row.add_(1)
        written += 1

    beside(lambda: [count() for _ in range(20)], write)
    assert count.recording.is_ready, count.recording.obstacle
    assert (table[0] == 20).all() and (row == written).all()
