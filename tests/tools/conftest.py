# SPDX-License-Identifier: MIT
"""Tests with servers and a browser, which `make test-tools` runs in an environment of its own.

`make test` skips them: their packages are large, and one needs a Python other than that of .venv.
"""

import os
from pathlib import Path

import pytest

TOOLS = os.environ.get("FTN_PYTORCH_TOOLS", "")


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if not TOOLS and here in Path(item.path).parents:
            item.add_marker(pytest.mark.skip(reason="make test-tools runs it"))


@pytest.fixture(scope="session")
def tools() -> Path:
    """The environment with the packages of requirements.txt."""
    return Path(TOOLS)
