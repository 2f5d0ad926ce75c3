# SPDX-License-Identifier: MIT
"""What is installed and found, with a verdict on each."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Mapping
from typing import Any

from . import __version__, process
from .device import describe_torch
from .errors import summary

_LIBRARY_FACTS = {
    "openmp_threads": "openmp team size",
    "floating_point": "floating point",
    "torch_access": "access to tensors",
}
_OPENMP = re.compile(r"lib(gomp|iomp5|omp)[-.\w]*\.so[.\d]*$")


def diagnose(info: Mapping[str, Any]) -> tuple[bool, str]:
    """True if scripts can be run, and one line per finding.

    ``info`` is what the library knows, empty in a plain Python: "executable", "library", "reason", "floating_point",
    "torch_access", "openmp_threads". torch and NumPy are imported if they are installed, since only that shows whether
    they work.
    """
    report = _Report()
    _interpreter(report, {**process.start_info(), **info})
    _library(report)
    numpy = _package(report, "numpy", "scripts without torch cannot be given arrays")
    torch = _package(report, "torch", "scripts that import it, and TorchScript models, cannot be loaded")
    report.check("arrays", numpy is not None or torch is not None, "", "neither numpy nor torch can be used")
    if torch is not None:
        report.note("torch finds", describe_torch(torch))
        report.note("torch threads", f"{torch.get_num_threads()} (OMP_NUM_THREADS {_variable('OMP_NUM_THREADS')})")
    report.note("cores", f"{process.cores()} may be used, {process.local_ranks(os.environ)} rank(s) on this node")
    _openmp(report)
    for name, label in _LIBRARY_FACTS.items():
        if info.get(name):
            report.note(label, str(info[name]))
    return report.fine, "\n".join(report.lines)


class _Report:
    """Lines of the form "name: finding", and whether all verdicts were good."""

    def __init__(self) -> None:
        self.fine = True
        self.lines: list[str] = []

    def note(self, name: str, finding: str) -> None:
        self.lines.append(f"{name}: {finding}")

    def check(self, name: str, good: bool, finding: str, verdict: str) -> None:
        """A line that appears with a verdict if it is bad, and only if there is a finding otherwise."""
        if not good:
            self.fine = False
            self.note(name, f"{finding} - NOT GOOD: {verdict}" if finding else f"NOT GOOD: {verdict}")
        elif finding:
            self.note(name, finding)


def _interpreter(report: _Report, info: Mapping[str, Any]) -> None:
    report.note("python", f"{platform.python_version()}, {info.get('executable') or sys.executable}")
    if info.get("reason"):
        adopted = info.get("adopted") == "1"
        report.note("chosen by", "the program, which had started it" if adopted else info["reason"])
    if info.get("library"):
        report.note("libpython", info["library"])
    report.note("prefix", f"{sys.prefix} (base {sys.base_prefix})")
    for variable in ("PYTHONHOME", "PYTHONPATH", "FTN_PYTORCH_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            report.note(variable, os.environ[variable])


def _library(report: _Report) -> None:
    library = process.library_version()
    found = f"Python part {__version__}, library {library or 'not loaded (this is a plain Python)'}"
    report.check(
        "ftn_pytorch", library in (None, __version__), found, "they must be of one version, install them together"
    )


def _package(report: _Report, name: str, consequence: str) -> Any | None:
    """Import a package if it is installed, and say what was found."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    try:
        module = importlib.import_module(name)
    # Not ImportError alone: libraries that torch cannot open are an OSError.
    except Exception as failure:
        if not version:
            report.note(name, f"not installed: {consequence}")
        else:
            report.check(name, False, version, f"it is installed and cannot be imported: {summary(failure)}")
        return None
    report.note(name, f"{getattr(module, '__version__', version)}, {module.__file__}")
    return module


def _variable(name: str) -> str:
    return os.environ.get(name) or "not set"


def _openmp(report: _Report) -> None:
    """OpenMP runtimes in the process: with two, Fortran and torch have threads of their own that compete for cores."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            mapped = {line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line}
    except OSError:
        return
    runtimes = sorted({os.path.realpath(path) for path in mapped if _OPENMP.search(path)})
    text = ", ".join(runtimes) or "none"
    if len(runtimes) > 1:
        text += " - more than one: set OMP_WAIT_POLICY=passive, or OMP_NUM_THREADS so that both fit the cores"
    report.note("openmp", text)
