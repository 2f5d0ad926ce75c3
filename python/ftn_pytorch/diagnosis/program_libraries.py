# SPDX-License-Identifier: MIT
"""What the doctor says of libraries of a program that have functions under names of torch's or of modules' own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import FtnPytorchError
from ..system import installation
from ..system.program_libraries import obstacle
from .finding import NOTE, OK, WRONG, Finding

_WAYS_OUT = 'load with per="node", or link the program with a static BLAS or one with other names'


def of_process(library: Any) -> Iterator[Finding]:
    """From inside: the program that runs this interpreter."""
    found = dict(library.program_libraries())
    found["obstacle"] = obstacle(found)
    # With torch in the process, its numbers have been looked at already.
    yield from _findings(found)


def of_program(program: str) -> Iterator[Finding]:
    """What the loader does for a program, which does not run: the library ends the process before it begins.

    FILE, ARGUMENT or LIBRARY where there is nothing that could be looked into.
    """
    core = installation.library()
    why = _not_loaded(program, core)
    if why:
        yield Finding("program", WRONG, f"{program} cannot be loaded: {why}")
        return
    with tempfile.NamedTemporaryFile(mode="r", suffix=".ftn_pytorch") as report:
        environment = {**_preloading(core), "FTN_PYTORCH_DOCTOR_REPORT": report.name}
        subprocess.run(
            [os.path.abspath(program)], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        rows = [line.rstrip("\n").split("\t") for line in report]
    found: dict[str, Any] = {"obstacle": "", "torch": {}, "modules": {}, "unusable": ""}
    for kind, *values in rows:
        if kind in ("torch", "modules"):
            found[kind][values[0]] = values[1]
        else:
            found[kind] = values[0]
    if "malloc" not in found:
        yield Finding("program", WRONG, f"{program}: {found.get('failure', 'its loader gave no answer')}")
        return
    yield from _findings(found)


def _preloading(core: str) -> dict[str, str]:
    before = os.environ.get("LD_PRELOAD", "")
    return {**os.environ, "LD_PRELOAD": f"{before}:{core}".lstrip(":")}


def _not_loaded(program: str, core: str) -> str:
    """Why a program does not start; empty where it is certain that it does not run if it is asked."""
    try:
        with open(program, "rb") as stream:
            head = stream.read(4096)
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{program} cannot be read: {failure.strerror}") from failure
    if head[:4] != b"\x7fELF":
        text = f"{program} is no compiled program: name the file that a launcher or script starts"
        raise FtnPytorchError("ARGUMENT", text)
    if not core:
        text = f"{program} cannot be looked into without the library: run the doctor of an installation"
        raise FtnPytorchError("LIBRARY", text)
    begin = head.find(b"/ld")
    begin = head.rfind(b"\0", 0, begin) + 1 if begin >= 0 else 0
    loader = os.fsdecode(head[begin : head.find(b"\0", begin)]) if begin else ""
    if not os.path.isfile(loader):
        text = f"{program} is no program with shared libraries: nothing of them takes the place of torch's own"
        raise FtnPytorchError("ARGUMENT", text)
    command = [loader, "--list", os.path.abspath(program)]
    listed = subprocess.run(command, env=_preloading(core), capture_output=True, text=True, check=False)
    if listed.returncode or core not in listed.stdout:
        return (listed.stderr or listed.stdout).strip()
    return ""


def _findings(found: Mapping[str, Any]) -> Iterator[Finding]:
    yield Finding("program's malloc", OK, found["malloc"])
    why = found["obstacle"]
    if why:
        yield Finding("own names first", NOTE, f"no: {why}")
    else:
        yield Finding("own names first", OK, "torch and modules of Python take their own functions (RTLD_DEEPBIND)")
    for which, name in (("torch", "program's BLAS, LAPACK"), ("modules", "program's HDF5, NetCDF")):
        functions = found[which]
        if not functions:
            continue
        text = "; ".join(
            f"{', '.join(function for function in functions if functions[function] == file)} of {file}"
            for file in sorted(set(functions.values()))
        )
        if not why:
            yield Finding(name, OK, f"{text}: for the program alone")
        elif which == "torch" and found.get("unusable"):
            yield Finding(name, WRONG, f"{text}; {found['unusable']}", _WAYS_OUT, "LIBRARY")
        elif which == "torch":
            yield Finding(name, NOTE, f"{text}: torch computes with it, if its numbers are right", _WAYS_OUT)
        else:
            cure = 'load with per="node", or use packages that are built with the library of the program'
            yield Finding(name, NOTE, f"{text}: modules that bring another one are refused", cure)
