# SPDX-License-Identifier: MIT
"""Recorded functions on a GPU that others use, too: processes, threads, streams, captures before."""

import contextlib
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

from devices import GPU  # noqa: E402
from ftn_pytorch import recorded  # noqa: E402
from gpu_cases import CASES, both_ways, network, settings_of_kernels, solve  # noqa: E402

pytestmark = [GPU, pytest.mark.usefixtures("extension")]


@contextlib.contextmanager
def another_process():
    code = "import torch; x = torch.randn(4096, 4096, device='cuda')\nwhile True: x = (x @ x).tanh(); x.sum().item()"
    process = subprocess.Popen([sys.executable, "-c", code])
    yield
    is_alive = process.poll() is None
    process.kill()
    process.wait()
    assert is_alive


def beside(prepare):
    """A thread that makes calls on a stream of its own."""

    @contextlib.contextmanager
    def surroundings():
        is_ready, is_over, failures = threading.Event(), threading.Event(), []

        def run():
            try:
                with torch.cuda.stream(torch.cuda.Stream()):
                    call = prepare()
                    is_ready.set()
                    while not is_over.is_set():
                        call()
            except Exception as failure:
                failures.append(failure)
            is_ready.set()

        thread = threading.Thread(target=run)
        thread.start()
        is_ready.wait()
        yield
        is_over.set()
        thread.join()
        assert not failures

    surroundings.__name__ = prepare.__name__
    return surroundings


def a_thread_that_draws():
    generator = torch.Generator("cuda")
    return lambda: torch.rand(1000, device="cuda", generator=generator).sum().item()


def a_recorded_network():
    net, x = network(64, 256, 64), torch.ones(128, 64, device="cuda")
    expected, apply = net(x).detach(), recorded(lambda x: net(x))

    def call():
        assert torch.equal(apply(x), expected)

    return call


@contextlib.contextmanager
def a_capture_that_has_failed():
    apply = recorded(solve)
    for _ in range(10):
        apply(torch.eye(3, device="cuda"))
    yield


@contextlib.contextmanager
def forty_captures():
    """As many as torch has streams for, and more."""
    net = network(4, 8, 2)
    for rows in range(1, 41):
        apply, x = recorded(lambda x: net(x)), torch.ones(rows, 4, device="cuda")
        for _ in range(8):
            apply(x)
    yield


@pytest.mark.filterwarnings("ignore::ftn_pytorch.system.process.FtnPytorchWarning")
@pytest.mark.parametrize(
    "surroundings",
    [
        another_process,
        beside(a_thread_that_draws),
        beside(a_recorded_network),
        a_capture_that_has_failed,
        forty_captures,
    ],
    ids=lambda each: each.__name__,
)
def test_the_same_beside_others(surroundings):
    with surroundings():
        for case in CASES:
            if case is not settings_of_kernels:  # which are those of all threads
                both_ways(case)
