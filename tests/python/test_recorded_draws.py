# SPDX-License-Identifier: MIT
"""Recorded functions that draw random numbers, beside a thread that draws all the time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.filterwarnings("ignore:.* is not recorded yet"),  # a call that others draw in tells nothing
]


def drawn_again(function, inputs):
    """How many numbers of that thread and of these calls are there a second time."""
    drawn, stop = [], threading.Event()

    def draw():
        while not stop.is_set():
            drawn.append(torch.rand(4))

    with ThreadPoolExecutor() as threads:
        drawing = threads.submit(draw)
        try:
            for x in inputs:
                drawn.extend(row.clone() for row in function(x))
        finally:
            stop.set()
        drawing.result()
    return len(drawn) - len({tuple(each.tolist()) for each in drawn})


def long(x):
    for _ in range(20):
        x = torch.tanh(x @ torch.eye(256))
    return x


def test_no_other_thread_draws_while_a_call_is_checked():
    """But what it was about to draw when a check began."""

    @recorded
    def function(x):
        first = torch.rand(1, 4)
        return torch.cat([first, torch.rand(1, 4) + 0 * long(x).sum()])

    assert drawn_again(function, [torch.ones(64, 256)] * 12) <= 12


def test_no_other_thread_draws_while_a_run_gives_up():
    """A run that has drawn finds that a number in a tensor is another one, and the call is made as it is."""

    @recorded
    def function(x):
        first = torch.rand(1, 4)
        if long(x).abs().max().item() > 0.5:
            first = first + 0
        return torch.cat([first, torch.rand(1, 4)])

    inputs = [torch.ones(64, 256), torch.zeros(64, 256)] * 15
    for x in inputs:
        function(x)
    assert any(each.tape.rewinds for each in function.recording._ready), function.recording.obstacle
    assert drawn_again(function, inputs) <= len(inputs)
