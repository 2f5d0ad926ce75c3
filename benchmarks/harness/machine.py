# SPDX-License-Identifier: MIT
"""What results are measured on and with, and what is the same for every process that measures."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

# Whether glibc gives large blocks back to the system, and takes a page fault for each page of the next one, depends on
# what a process has freed before. So one process may take 1.4 times longer than another one for the same network. With
# these, none gives anything back. Some versions of glibc refuse a threshold for mmap above 32 MiB.
MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


def worker_environment() -> dict[str, str]:
    """Variables for a process that measures: this Python, one thread, an allocator that gives no memory back."""
    return {
        **MALLOC,
        "OMP_NUM_THREADS": "1",
        "FTN_PYTORCH_PYTHON": sys.executable,
        # Libraries that embed the Python they find first.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


def last_core() -> int:
    """The core to measure on: the last one that this process may use, since systems prefer the first ones."""
    return max(os.sched_getaffinity(0))


def describe_machine() -> dict[str, str | int | float]:
    """Processor, cores, memory in GiB, system, load at the start."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "core_used": last_core(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{_system()}, Linux {platform.release()}",
        "load_before": load(),
    }


def load() -> float:
    """Mean number of runnable processes of the last minute."""
    return round(os.getloadavg()[0], 2)


def versions() -> dict[str, str]:
    """Of Python and of the packages that take part, as far as they are installed."""
    found = {"python": platform.python_version()}
    for name in ("torch", "numpy", "onnx", "onnxruntime"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@contextlib.contextmanager
def described() -> Iterator[dict[str, Any]]:
    """The part of a document that says where it was measured: yielded before, and complete after."""
    found: dict[str, Any] = {"machine": describe_machine(), "versions": versions()}
    yield found
    found["machine"]["load_after"] = load()


def program_of(build: Path, name: str, program: str) -> Path:
    """A built program of a benchmark. FileNotFoundError with what builds it."""
    file = build.resolve() / "benchmarks" / name / program
    if not file.is_file():
        raise FileNotFoundError(f"there is no {file}: cmake --build {build} --target {program}")
    return file


def package_of(build: Path) -> str:
    """The folder of the Python package of a build."""
    return str(build.resolve() / "share" / "ftn_pytorch" / "python")


def build_type(build: Path) -> str:
    """CMAKE_BUILD_TYPE of a build folder."""
    lines = (build / "CMakeCache.txt").read_text().splitlines()
    return next((line.partition("=")[2] for line in lines if line.startswith("CMAKE_BUILD_TYPE")), "unknown build type")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()
