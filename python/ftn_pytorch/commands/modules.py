# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch modules``: the Fortran modules that builds of projects have kept for the next project.

CMake writes and reads the cache: ``cmake/modules/cache.cmake``. A folder in it holds the objects and module files of
one compiler and its flags, and ``key.txt``, which says which.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--remove", action="store_true", help="remove them: the next project compiles its own")


def run(chosen: argparse.Namespace) -> int:
    """List what is there, or remove it."""
    folder = cache()
    entries = list(_entries(folder))
    size = sum(map(_size, entries))
    if chosen.remove:
        for entry in entries:
            shutil.rmtree(entry, ignore_errors=True)  # another process may remove it, too
        print(f"{folder}: {len(entries)} removed, {size / 1e6:.1f} MB")
        return 0
    for entry in entries:
        print(f"{entry.name}  {_size(entry) / 1e6:.1f} MB  {_compiler(entry)}")
    print(f"{folder}: {len(entries)} entries, {size / 1e6:.1f} MB")
    return 0


def cache() -> Path:
    """The folder that CMake takes where FTN_PYTORCH_MODULES_CACHE names no other."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return base / "ftn_pytorch" / "modules"


def _entries(folder: Path) -> Iterator[Path]:
    """Also what a build that was ended has left, which has no name yet."""
    return (entry for entry in sorted(folder.glob("*")) if entry.is_dir())


def _compiler(entry: Path) -> str:
    """What a line of its key says of the Fortran compiler: name, version, file, flags."""
    try:
        lines = (entry / "key.txt").read_text().splitlines()
    except OSError:
        return "not complete"
    return next((line.removeprefix("Fortran: ") for line in lines if line.startswith("Fortran: ")), "no compiler named")


def _size(entry: Path) -> int:
    return sum(file.lstat().st_size for file in entry.rglob("*") if file.is_file())
