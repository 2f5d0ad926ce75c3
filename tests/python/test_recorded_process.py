# SPDX-License-Identifier: MIT
"""What a recorded function asks of its thread and of the system, and profilers that look on."""

import cProfile
import dataclasses
import logging
import pstats
import random
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

from ftn_pytorch import recorded  # noqa: E402
from ftn_pytorch.system.process import FtnPytorchWarning  # noqa: E402

pytestmark = pytest.mark.usefixtures("extension")

X = torch.arange(6.0)
CALLS = 10


class Silent(random.Random):
    def getstate(self):
        raise ArithmeticError("no state")


tables = {threading.get_ident(): 2.0}
system, silent = random.SystemRandom(), Silent()


def of_the_thread(x):
    return x * tables[threading.get_ident()]


def of_the_thread_of_the_system(x):
    return x * len(str(threading.get_native_id()))


def named_like_the_thread(x):
    return x * len(threading.current_thread().name)


def as_many_as_threads(x):
    return x * threading.active_count()


def as_many_as_are_listed(x):
    return x * len(threading.enumerate())


def drawn_of_the_system(x):
    return x * (system.random() < 2)


def with_numbers_that_cannot_be_told(x):
    return x * (silent is not None)


REASONS = {
    of_the_thread: "it asks for its thread",
    of_the_thread_of_the_system: "it asks for its thread",
    named_like_the_thread: "it asks for its thread",
    as_many_as_threads: "it asks for its thread",
    as_many_as_are_listed: "it asks for its thread",
    drawn_of_the_system: "it calls posix.urandom",
    with_numbers_that_cannot_be_told: r"what it uses cannot be looked at \(ArithmeticError: no state\)",
}


@pytest.mark.parametrize("function", REASONS, ids=lambda function: function.__name__)
def test_reasons(function):
    step = recorded(function)
    with pytest.warns(FtnPytorchWarning, match=REASONS[function]):
        for _ in range(CALLS):
            assert torch.equal(step(X), function(X))


@dataclasses.dataclass
class Config:
    factor: float


def test_what_asks_for_the_thread_to_protect_itself():
    """A text of a dataclass does so, and a message."""
    config = Config(2.0)

    def step(x):
        logging.getLogger("quiet").info("%s", config)
        return x * len(f"{config}")

    apply = recorded(step)
    assert all(torch.equal(apply(X), step(X)) for _ in range(CALLS)) and apply.recording.is_ready


def test_a_generator_of_the_system_that_is_not_drawn_from():
    step = recorded(lambda x: x * 2 if isinstance(system, random.Random) else x)
    assert all(torch.equal(step(X), X * 2) for _ in range(CALLS)) and step.recording.is_ready


def double(x):
    return x * 2


def counted(x):
    return x


def test_a_profiler_of_python_goes_on_after_a_recording():
    step = recorded(double)
    profile = cProfile.Profile()
    profile.enable()
    try:
        for _ in range(CALLS):
            assert torch.equal(counted(step(X)), X * 2)
        assert sys.getprofile() is profile or sys.version_info >= (3, 12)
    finally:
        profile.disable()
    assert step.recording.is_ready, step.recording.obstacle
    calls = {name: count for (_, _, name), (count, *_) in pstats.Stats(profile).stats.items()}
    assert calls["counted"] == CALLS


def test_a_hook_of_the_program_is_put_back():
    seen = []
    step = recorded(double)
    sys.setprofile(hook := lambda frame, event, argument: seen.append(frame.f_code.co_name))
    try:
        for _ in range(CALLS):
            counted(step(X))
        assert sys.getprofile() is hook
    finally:
        sys.setprofile(None)
    assert step.recording.is_ready and seen.count("counted") == 2 * CALLS


def test_a_profiler_that_cannot_be_put_back_is_left_alone(monkeypatch):
    """As one that is written in C: Python shows an object that is no function."""
    monkeypatch.setattr(sys, "getprofile", lambda: X)
    monkeypatch.setattr(sys, "setprofile", lambda hook: pytest.fail("it was taken away"))
    step = recorded(double)
    with pytest.warns(FtnPytorchWarning, match=r"a profiler looks on \(Tensor\)"):
        assert all(torch.equal(step(X), X * 2) for _ in range(CALLS))
