# SPDX-License-Identifier: MIT
"""The build tree that the tests use."""

from __future__ import annotations

import os
from pathlib import Path


def build_folder() -> Path:
    """FTN_PYTORCH_BUILD_DIR, or that of the preset dev."""
    return Path(os.environ.get("FTN_PYTORCH_BUILD_DIR", Path(__file__).resolve().parents[1] / "build" / "dev"))


def cmake_cache(folder: Path) -> dict[str, str]:
    """Variables of CMakeCache.txt."""
    lines = (folder / "CMakeCache.txt").read_text().splitlines()
    entries = (line.partition("=") for line in lines if "=" in line and not line.startswith(("#", "//")))
    return {name.partition(":")[0]: value for name, _, value in entries}
