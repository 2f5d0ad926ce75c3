# SPDX-License-Identifier: MIT
"""Parts of the package that are called in a recorded function say what they are: procedures of the program."""

import re
import sys
import threading
import types

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import procedure, recorded  # noqa: E402
from ftn_pytorch.system import thread_recorder  # noqa: E402
from ftn_pytorch.tensors import procedures  # noqa: E402

CALLS = 40

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def program(monkeypatch):
    """A program with the procedure "scaled", whose output lies in an array of its own."""
    memory, made = torch.zeros(2), []

    def call(name, adjoint, tensors, count):
        made.append(adjoint)
        if adjoint:
            return (2 * tensors[-1],)
        memory.copy_(2 * tensors[0])
        return (memory,)

    library = types.ModuleType("_ftn_pytorch")
    library.inherit = lambda descriptor, stays_open: None  # for locks of other tests, which end at any moment
    library.outputs_of_procedure = lambda name: 1
    library.call_procedure = call
    library.warn = lambda text: None
    monkeypatch.setitem(sys.modules, "_ftn_pytorch", library)
    procedures._function.cache_clear()
    yield made
    procedures._function.cache_clear()


def test_a_procedure_of_the_program_is_called_in_each_call(program):
    scaled = procedure("scaled")

    @recorded
    def step(x):
        return scaled(x) + 1

    for number in range(CALLS):
        # the same number in the calls that would be compared
        x = torch.full((2,), float(number // 20))
        assert torch.equal(step(x), 2 * x + 1)
    assert re.match(
        r"test_recorded_notices.py:\d+: it calls procedure 'scaled' of the program", step.recording.obstacle
    )
    assert len(program) == CALLS


def test_an_adjoint_of_the_program_is_called_in_each_call(program):
    scaled = procedure("scaled")

    @recorded
    def slope(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(scaled(x).square().sum(), x)[0]

    for number in range(CALLS):
        x = torch.full((2,), float(number // 20))
        assert torch.equal(slope(x), 2 * 2 * 2 * x)
    assert "procedure 'scaled' of the program" in slope.recording.obstacle
    assert sum(program) == CALLS


def test_only_the_recorder_of_this_thread_is_told():
    told = []
    recorder = types.SimpleNamespace(refuse=told.append, keep=told.append)
    before = thread_recorder.begin(recorder)
    try:
        elsewhere = threading.Thread(target=lambda: thread_recorder.refuse("of another thread"))
        elsewhere.start()
        elsewhere.join()
        thread_recorder.refuse("of this one")
        thread_recorder.keep(1, 2)
    finally:
        thread_recorder.end(before)
    thread_recorder.refuse("after it")
    assert told == ["of this one", 1, 2]


def test_a_recorded_function_that_fails_is_told_no_more():
    @recorded
    def step(x):
        raise ZeroDivisionError

    for _ in range(8):
        with pytest.raises(ZeroDivisionError):
            step(torch.ones(2))
    assert not thread_recorder.is_recording()
