# SPDX-License-Identifier: MIT
"""Recorded functions on a GPU against the same functions as they are, bit for bit: what graphs could get wrong."""

import copy
import os
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import program  # noqa: E402
from devices import GPU  # noqa: E402
from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.recording import cuda_graphs  # noqa: E402
from ftn_pytorch.system import extension, other_threads  # noqa: E402
from gpu_cases import CALLS, CASES, MIB, both_ways, network, plain, step_of  # noqa: E402

nn = torch.nn
BUILD = os.environ.get("FTN_PYTORCH_BUILD_DIR", "")

pytestmark = [GPU, pytest.mark.usefixtures("extension")]

# ---- threads and streams


@pytest.mark.parametrize("where", ["cuda", "cpu"])
def test_threads_share_a_function(where):
    net = network(16, 64, 4)
    apply = recorded(lambda x: net(x.cuda()))
    inputs = [torch.randn(32, 16, device=where) for _ in range(4)]
    expected, wrong = [net(x.cuda()).detach() for x in inputs], []
    for _ in range(8):
        apply(inputs[0])
    assert apply.recording.is_ready, apply.recording.obstacle

    def run(number):
        for _ in range(300):
            if not torch.equal(apply(inputs[number]), expected[number]):
                wrong.append(number)

    together(run, range(4))
    assert not wrong


def together(body, numbers):
    failures = []

    def run(number):
        try:
            body(number)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_threads_record_steps_of_their_own():
    def trained(record, number):
        net = copy.deepcopy(nets[number])
        step = record(step_of(net, torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)))
        return torch.stack([step(x) for _ in range(60)])

    x, nets = torch.ones(8, 4, device="cuda"), [network(4, 16 + number, 2) for number in range(4)]
    expected = [trained(plain, number) for number in range(4)]
    found = {}

    def run(number):
        found[number] = trained(recorded, number)

    for _ in range(3):
        together(run, range(4))
        assert all(torch.equal(found[number], expected[number]) for number in range(4))


def test_one_function_on_several_streams():
    net = network(256, 512, 512, 256)
    apply = recorded(lambda x: net(x))
    inputs = [torch.randn(512, 256, device="cuda") for _ in range(4)]
    expected = [net(x).detach() for x in inputs]
    for _ in range(8):
        apply(inputs[0])
    streams = [torch.cuda.Stream() for _ in inputs]
    torch.cuda.synchronize()
    for _ in range(30):
        found = []
        for stream, x in zip(streams, inputs):
            with torch.cuda.stream(stream):
                found.append(apply(x))
        torch.cuda.synchronize()
        assert all(torch.equal(one, other) for one, other in zip(found, expected))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_networks_become_graphs(kind):
    """cuDNN has their weights in one tensor, which torch puts into the memory of the parameters in each call."""

    def case(record):
        torch.manual_seed(1)
        net = kind(4, 8, 2).cuda()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)
        x = torch.randn(5, 16, 4, device="cuda")

        def step(x):
            optimizer.zero_grad()
            loss = net(x)[0].square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        train, apply = record(step), record(lambda x: net(x)[0])
        for call in range(2 * CALLS):
            net.train(call < CALLS)
            yield (train if call < CALLS else apply)(x)
        for function in (train, apply):
            if hasattr(function, "recording"):
                assert function.recording.is_ready, function.recording.obstacle
                # a graph of what may draw is not captured beside the threads of pytest-xdist, with torch 2.11
                is_possible = extension.module().others_may_draw or not other_threads.there_are()
                assert graphs_of(function) == is_possible

    both_ways(case)


def test_dropout_of_recurrent_networks():
    """cuDNN has a random state of its own, which later calls of all such networks are given: in another process."""
    code = "import gpu_cases; gpu_cases.both_ways(gpu_cases.recurrent_with_dropout)"
    environment = {**os.environ, "PYTHONPATH": program.PYTHONPATH, "ftn_pytorch_ROOT": BUILD}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_same_both_ways(case):
    both_ways(case)


def test_memory_that_ends_in_a_capture(monkeypatch):
    def fail(*args):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    def case(record):
        net = network(4, 8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        step, x = record(step_of(net, optimizer)), torch.ones(8, 4, device="cuda")
        with monkeypatch.context() as patch:
            for call in range(CALLS):
                if call == 12:
                    optimizer.param_groups[0]["lr"] = 0.05
                    patch.setattr(extension.module(), "capture", fail)
                yield step(x)

    both_ways(case)


def graphs_of(step):
    replays = [each for each in cuda_graphs._alive if each._name == step.recording.name]
    return sum(len(each._graphs) for each in replays)


def test_shapes_and_addresses_share_memory():
    net = nn.Sequential(nn.Conv2d(4, 64, 3), nn.ReLU(), nn.Conv2d(64, 4, 3)).cuda()
    step = step_of(net, torch.optim.SGD(net.parameters(), lr=0.1))
    arrays = {rows: [torch.randn(rows, 4, 128, 128, device="cuda") for _ in range(2)] for rows in (8, 12, 14, 16)}

    def reserved(function):
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved()
        for _ in range(8):
            for pair in arrays.values():
                for x in pair:
                    function(x)
        return torch.cuda.memory_reserved() - before

    eager = reserved(step)
    replayed = recorded(step)
    assert reserved(replayed) < 2.5 * eager
    assert replayed.recording.is_ready and graphs_of(replayed) == 8


def test_functions_that_come_and_go_cost_no_memory():
    def made():
        net = network(16, 64, 4)
        apply, x = recorded(lambda x: net(x)), torch.ones(32, 16, device="cuda")
        for _ in range(8):
            apply(x)
        assert apply.recording.is_ready

    made()
    torch.cuda.synchronize()
    before = torch.cuda.memory_reserved()
    for _ in range(12):
        made()
    assert torch.cuda.memory_reserved() - before <= 64 * MIB


def test_buffers_are_aligned_as_the_array():
    for shift in (0, 1, 3, 64):
        x = torch.empty(1000, device="cuda")[shift : shift + 30].reshape(5, 6)[:, :4]
        like = cuda_graphs.like(x, 256)
        assert like.data_ptr() % 256 == x.data_ptr() % 256 and like.stride() == x.stride()


@pytest.mark.parametrize("name", ["Adam", "NAdam", "RAdam", "Adamax"])
def test_plain_optimizers_run_as_operators(name):
    def case(record):
        net = network(4, 8, 2)
        optimizer = getattr(torch.optim, name)(net.parameters(), lr=1e-2)
        step = record(step_of(net, optimizer))
        for _ in range(CALLS):
            yield step(torch.ones(8, 4, device="cuda"))
        yield from net.parameters()

    both_ways(case)
