# SPDX-License-Identifier: MIT
"""What tests share: an installed copy; of the wheel an environment with it, a program, and a model."""

import sys
import warnings
from pathlib import Path

import pytest
from projects import build, install
from wheels import HERE_VERSION, Environment, make, wheel_of, with_torch_of_tests


@pytest.fixture(scope="module")
def prefix(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(build_dir, tmp_path_factory.mktemp("installed") / "prefix")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheel")


@pytest.fixture(scope="session")
def environment(place: Path) -> Environment:
    return with_torch_of_tests(make(place / "own", sys.executable, wheel_of(HERE_VERSION)))


@pytest.fixture(scope="session")
def model(place: Path) -> Path:
    import torch

    file = place / "model.pt"
    with warnings.catch_warnings(action="ignore"):  # torch.jit is deprecated
        torch.jit.script(torch.nn.Linear(3, 1)).save(str(file))
    return file


@pytest.fixture(scope="session")
def program(environment: Environment, place: Path) -> Path:
    """The package is found without any option, because the environment is active."""
    return build("find_package", place, **environment.active)
