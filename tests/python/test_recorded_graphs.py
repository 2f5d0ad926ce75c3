# SPDX-License-Identifier: MIT
"""What surrounds the graphs of a GPU, with graphs that are played on the host: buffers, turns, gradients, settings.

A played graph computes what was captured, again from the addresses it was captured with and into the memory of its
results. tests/python with a GPU, and tests/gpu, show that real ones do.
"""

import sys
import threading
import time

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording import cuda_graphs, late_checks, memory_spans  # noqa: E402
from ftn_pytorch.system import extension  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

nn = torch.nn
HOST = torch.device("cpu")
READY = 7

pytestmark = pytest.mark.usefixtures("extension")


class Graph:
    def __init__(self, launch):
        self.made, self._launch, self.replays = launch(), launch, 0

    def replay(self):
        self.replays += 1
        results, gradients = self._launch()
        time.sleep(0)
        for old, new in zip((*self.made[0], *self.made[1]), (*results, *gradients)):
            if old is not None:
                old.copy_(new)

    can_be_replayed = True


class Order:
    """As the extension's ``DeviceTurns``, of a device without streams."""

    def __init__(self):
        self._lock = threading.Lock()
        self.give_back = self._lock.release

    def take(self, wait=0.0):
        return self._lock.acquire(timeout=wait) if wait else self._lock.acquire(blocking=False)

    def begin(self):
        pass

    end = begin


class Turns(cuda_graphs.Turns):
    """Of a device whose graphs are played."""

    def __init__(self):
        super().__init__(HOST, Order(), "")
        self.graphs, self.fails = [], ""

    def capture(self, prepare, restore, launch, draws):
        prepare()
        if self.fails:
            raise RuntimeError(self.fails)
        restore()
        with torch.random.fork_rng():  # what a capture is given draws nothing
            graph = Graph(launch)
        restore()
        self.graphs.append(graph)
        return graph, graph.made

    @property
    def replays(self):
        return sum(max(0, graph.replays) for graph in self.graphs)


@pytest.fixture
def turns(monkeypatch):
    made = Turns()
    monkeypatch.setattr(cuda_graphs, "turns_of", lambda device: made)
    monkeypatch.setattr(cuda_graphs, "device_of", lambda tape, inputs: HOST)
    monkeypatch.setattr(cuda_graphs, "obstacle", lambda tape, inputs, device: "")
    return made


def placed(shift=0, rows=8, columns=4):
    """An array at an address that is ``shift`` numbers behind a multiple of 256 bytes."""
    room = torch.empty(4096)
    begin = -(room.data_ptr() // 4) % 64 + shift
    return room[begin : begin + rows * columns].reshape(rows, columns)


def ready(function, *args):
    for _ in range(READY):
        function(*args)
    assert function.recording.is_ready, function.recording.obstacle
    return function


def test_arrays_at_other_addresses_have_buffers_with_their_strides_and_alignment(turns):
    seen = []
    apply = recorded(lambda x: x * 2)
    arrays = [placed() for _ in range(3)] + [placed(1), placed(1), torch.randn(4, 8).t()]
    for x in arrays:
        x.normal_()
        for _ in range(READY):
            assert torch.equal(apply(x), x * 2)
        seen.append(len(turns.graphs))
    # the first address, others aligned as it is, others aligned in another way, and a recording for other strides
    assert seen == [1, 2, 2, 3, 3, 4]
    for each in (arrays[3], torch.randn(6, 5)[::2, 1], torch.empty(3, 0)):
        assert cuda_graphs.like(each, 256).stride() == each.stride()


def asked(monkeypatch, apply):
    """How often it was asked whether the recording of a function holds, one entry each."""
    (variant,), asks = apply.recording._ready, []

    class Counted:
        def __getattr__(self, name):
            if name in ("given", "run"):
                asks.append(name)
            return getattr(variant.replay, name)

    monkeypatch.setattr(variant.runner, "_replay", Counted())
    return asks


def test_more_alignments_than_graphs_run_as_operators(turns, monkeypatch):
    apply = ready(recorded(lambda x: x * 2), placed())
    asks = asked(monkeypatch, apply)
    for shift in range(1, 12):
        assert torch.equal(apply(placed(shift).fill_(shift)), torch.full((8, 4), 2.0 * shift))
    assert len(turns.graphs) == 8 and len(asks) == 11, "each call asks once whether the recording holds"


@pytest.mark.parametrize("is_new", [False, True])
def test_what_draws_beside_other_threads_waits_for_its_graph_where_torch_is_old(turns, monkeypatch, is_new):
    """It says so once, and each call asks once whether the recording holds."""
    told, others = [], [True]
    monkeypatch.setattr(extension.module(), "others_may_draw", is_new)
    monkeypatch.setattr(cuda_graphs.other_threads, "there_are", lambda: others[0])
    monkeypatch.setattr(cuda_graphs.log, "info", told.append)
    x = placed().fill_(1.0)
    apply = ready(recorded(lambda x: nn.functional.dropout(x)), x)
    asks = asked(monkeypatch, apply)
    torch.manual_seed(1)
    found = [apply(x) for _ in range(6)]
    assert len(asks) == 6 and bool(turns.graphs) == is_new
    waits = [each for each in told if "no CUDA graph as long as there are other threads" in each]
    assert len(waits) == (0 if is_new else 1)
    others[0] = False
    found += [apply(x) for _ in range(6)]
    assert len(asks) == 12 and len(turns.graphs) == 1, "there is a graph once its thread is alone"
    torch.manual_seed(1)
    assert all(torch.equal(each, nn.functional.dropout(x)) for each in found)


def test_threads_that_share_a_graph(turns):
    """One launches it; who comes meanwhile runs the operators."""
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    inputs = [placed().fill_(float(number)) for number in range(4)]
    expected, wrong = [net(x).detach() for x in inputs], []
    apply = ready(recorded(lambda x: net(x)), inputs[0])

    def run(number):
        for _ in range(150):
            if not torch.equal(apply(inputs[number]), expected[number]):
                wrong.append(number)

    first, before = turns.replays, sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    shared = turns.replays - first
    run(0)  # alone: each call launches it again
    assert not wrong and 0 < shared <= 600 and turns.replays == first + shared + 150


def test_arrays_that_overlap_where_one_is_written(turns):
    def shift(x, y):
        y.mul_(2)
        return x.sum()

    memory = torch.zeros(512)
    begin = -(memory.data_ptr() // 4) % 64
    apply, found = recorded(shift), []
    for function in (shift, apply):
        memory.copy_(torch.linspace(0, 1, 512))
        apart = [placed(columns=1).fill_(1.0) for _ in range(2)]
        for _ in range(READY):
            function(*apart)
        for second in (64, 3, 0, 64):  # apart, a part, all, apart
            x, y = (memory[begin + each : begin + each + 8].reshape(8, 1) for each in (0, second))
            found.append((function(x, y).item(), memory.tolist()))
    assert found[:4] == found[4:]
    assert apply.recording.is_ready and len(turns.graphs) >= 2


def test_an_array_of_the_script_that_is_written_is_given_as_an_argument(turns):
    state = torch.zeros(8, 4)

    def function(x):
        state.add_(1)
        return x.sum()

    apply, found = recorded(function), []
    for each in (function, apply):
        state.zero_()
        for _ in range(READY):
            each(placed().fill_(0.0))
        found.append([each(state[2:].contiguous()).item(), each(state).item()])
        state.zero_()
    assert found[0] == found[1]


def step_of(net, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


# How a caller keeps a gradient
KEEPS = {
    "itself": lambda each: each,
    "a view": lambda each: each[:1],
    "detached": lambda each: each.detach(),
    "not at all": lambda each: each.clone(),
}


@pytest.mark.parametrize("way", KEEPS)
def test_gradients_that_the_caller_keeps(turns, way):
    def run(record):
        torch.manual_seed(1)
        net = nn.Linear(4, 2)
        step = record(step_of(net, torch.optim.SGD(net.parameters(), lr=0.1)))
        kept, x = [], placed().fill_(1.0)
        for call in range(24):
            step(x)
            if call % 3 == 0:
                kept += [KEEPS[way](each.grad) for each in net.parameters()]
        return kept, net.weight.detach().clone(), step

    (one, weight, _), (other, same, step) = run(lambda function: function), run(recorded)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True)) and torch.equal(weight, same)
    assert step.recording.is_ready and turns.replays > 12
    # a gradient that is kept costs one more capture
    assert len(turns.graphs) == (1 if way == "not at all" else 2)


@pytest.fixture
def often(monkeypatch):
    """Each tenth run is checked, however long it takes."""
    monkeypatch.setenv(late_checks.VARIABLE, "10")
    monkeypatch.setattr(late_checks, "_SHARE", 1e9)


def test_a_late_check_of_a_graph_changes_nothing(turns, often):
    def run(record):
        torch.manual_seed(1)
        net, called = nn.Linear(4, 2), []
        step = step_of(net, torch.optim.SGD(net.parameters(), lr=0.1))

        def counted(x):
            called.append(1)
            return step(x)

        apply, x = record(counted), placed().fill_(1.0)
        return apply, [apply(x).item() for _ in range(80)], len(called)

    _, plain, _ = run(lambda function: function)
    apply, found, calls = run(lambda function: recorded(function, ignore=["called"]))
    assert found == plain and apply.recording.is_ready
    assert 11 < calls < 20, "some of the runs are checked"
    assert len(turns.graphs) == 1, "a check keeps no gradient, for which graphs would have to copy theirs"


def test_a_late_check_of_a_graph_tells_what_no_rule_sees(turns, often, monkeypatch):
    apply = ready(recorded(lambda x: nn.functional.relu(x)), x := placed().normal_())
    for _ in range(30):
        assert torch.equal(apply(x), x.relu())
    monkeypatch.setattr(nn.functional, "relu", torch.tanh)
    with pytest.warns(FtnPytorchWarning, match="is not recorded: something that it uses has changed and was not seen"):
        found = [torch.equal(apply(x), x.tanh()) for _ in range(20)]
    assert all(found[found.index(True) :]) and not apply.recording.is_ready


def test_settings_of_kernels_are_what_a_graph_is_valid_for(turns):
    apply, x, settings = recorded(lambda x: x * 2), placed().fill_(1.0), torch.backends.cuda.matmul
    before = settings.allow_tf32
    try:
        settings.allow_tf32 = False
        ready(apply, x)
        for is_allowed, count in ((False, 1), (True, 2), (True, 2)):
            settings.allow_tf32 = is_allowed
            apply(x)
            assert len(turns.graphs) == count
    finally:
        settings.allow_tf32 = before


def test_numbers_that_change_too_often_end_graphs_and_nothing_else(turns):
    def run(record):
        torch.manual_seed(1)
        net = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        step, x, losses = record(step_of(net, optimizer)), placed().fill_(1.0), []
        for _ in range(30):
            losses.append(step(x).item())
            schedule.step()
        return losses, step

    (one, _), (other, step) = run(lambda function: function), run(recorded)
    assert one == other and step.recording.is_ready
    assert len(turns.graphs) == 9


@pytest.mark.parametrize("text", ["CUDA out of memory. Tried to allocate 2 GiB", "operation not permitted"])
def test_a_capture_that_fails_changes_nothing(turns, text):
    def run(record):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        step = record(step_of(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)))
        torch.manual_seed(2)
        losses = []
        for call in range(20):
            turns.fails = text if call > 10 else ""
            # another address, at which a graph of its own is captured
            losses.append(step(placed(0 if call < 11 else 4).fill_(1.0)).item())
        return losses, step

    (one, _), (other, step) = run(lambda function: function), run(recorded)
    assert one == other and step.recording.is_ready


def test_memory_of_many_tensors():
    memory = torch.zeros(100)
    spans = memory_spans.Spans([memory[10:20], memory[15:30], memory[50:60], memory[70:70]])
    for begin, end, is_met in (
        (0, 10, False),
        (0, 11, True),
        (29, 40, True),
        (30, 50, False),
        (55, 56, True),
        (60, 99, False),
    ):
        assert spans.meet(*memory_spans.span_of(memory[begin:end])) == is_met
    assert not spans.meet(*memory_spans.span_of(memory[15:15]))


def test_turns_without_a_plugin_that_can_be_opened(monkeypatch):
    """The plug-in may be there and not be usable, such as one of another build."""

    class Extension:
        @staticmethod
        def device_turns(plugin, gpu):
            if plugin:
                raise ImportError(f"{plugin} is not of the build of this module")
            return Order()

    monkeypatch.setattr(cuda_graphs.extension, "module", lambda: Extension)
    monkeypatch.setattr(cuda_graphs.extension, "plugin", lambda: "libftn_pytorch_direct.so")
    monkeypatch.setattr(cuda_graphs, "_known", {})
    device = torch.device("cuda", 0)
    made = cuda_graphs.turns_of(device)
    assert made.order.take() and cuda_graphs.turns_of(device) is made
