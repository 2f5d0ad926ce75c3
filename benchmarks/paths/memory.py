# SPDX-License-Identifier: MIT
"""The memory of a process, as Linux tells it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.worker import Unavailable


@dataclass(frozen=True)
class Memory:
    """Bytes of a process.

    peak: largest resident memory so far; private: pages that no other process has, which are files as well if it is the
    only one that maps them; dirty: those among them that it has written; has_python: whether Python is in it
    """

    peak: int
    private: int
    dirty: int
    has_python: bool


def memory_of(process: int | Path) -> Memory:
    """Of a process, or of its folder of /proc. Unavailable if it has ended, or if the system does not tell."""
    folder = Path("/proc") / str(process)
    try:
        status = _kilobytes(folder / "status")
        pages = _kilobytes(folder / "smaps_rollup")
        mapped = {line.rpartition("/")[2] for line in (folder / "maps").read_text().splitlines() if "/" in line}
        return Memory(
            peak=status["VmHWM"] * 1024,
            private=(pages["Private_Clean"] + pages["Private_Dirty"]) * 1024,
            dirty=pages["Private_Dirty"] * 1024,
            has_python=any(name.startswith(("libpython", "python")) for name in mapped),
        )
    except (OSError, KeyError) as failure:
        raise Unavailable(f"its memory is not known: {failure}") from failure


def _kilobytes(file: Path) -> dict[str, int]:
    """The lines "NAME: NUMBER kB" of a file."""
    words = [line.split() for line in file.read_text().splitlines()]
    return {line[0].rstrip(":"): int(line[1]) for line in words if len(line) == 3 and line[2] == "kB"}
