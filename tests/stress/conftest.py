# SPDX-License-Identifier: MIT
"""Drivers, and how many examples hypothesis makes.

FPT_STRESS_SEED      seed of all examples, default 0; make stress takes it from the clock
FPT_STRESS_EXAMPLES  examples of each property and way, default 25
"""

import os
from pathlib import Path

import hypothesis
import pytest
from driving import Died, Driver

SEED = int(os.environ.get("FPT_STRESS_SEED") or 0)
EXAMPLES = int(os.environ.get("FPT_STRESS_EXAMPLES") or 25)

hypothesis.settings.register_profile(
    "stress", max_examples=EXAMPLES, deadline=None, database=None, print_blob=True,
    suppress_health_check=list(hypothesis.HealthCheck))  # fmt: skip
hypothesis.settings.load_profile("stress")


def pytest_report_header() -> str:
    return f"tests/stress: FPT_STRESS_SEED={SEED} FPT_STRESS_EXAMPLES={EXAMPLES}"


@pytest.fixture(scope="session")
def seed() -> int:
    return SEED


@pytest.fixture(scope="session")
def logs(build_dir: Path) -> Path:
    """What drivers were told, for running a failure again."""
    folder = build_dir / "stress"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def start(build_dir, logs, request):
    """Start a driver; it must end well when the test is over, unless the test has ended it."""
    made = []

    def new(way: str = "embedded", **options) -> Driver:
        name = "".join(c if c.isalnum() else "_" for c in request.node.name)
        made.append(Driver(build_dir, way, logs / f"{name}_{len(made)}.txt", **options))
        return made[-1]

    yield new
    for driver in made:
        if driver._process.poll() is None:
            assert driver.end() == 0


class Lasting:
    """A driver for all examples of a property: what it keeps between calls is part of what is tested.

    Where it dies a new one takes its place, so that hypothesis can look for a smaller example.
    """

    def __init__(self, new, prepare) -> None:
        self._new, self._prepare, self._driver = new, prepare, None

    def get(self) -> Driver:
        if self._driver is None or self._driver._process.poll() is not None:
            self._driver = self._new()
            self._prepare(self._driver)
        return self._driver


@pytest.fixture(params=["embedded", "CDLL", "PyDLL"])
def way(request) -> str:
    """A program with Python in it; a Python that lets go of its lock, or holds it, when it calls the library."""
    return request.param


@pytest.fixture
def lasting(start, way):
    return lambda prepare: Lasting(lambda: start(way), prepare)


__all__ = ["Died"]
