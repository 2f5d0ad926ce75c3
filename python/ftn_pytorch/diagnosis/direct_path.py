# SPDX-License-Identifier: MIT
"""What the doctor says of the libraries that run saved models without Python: the plug-in, TorchScript beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .._version import __version__
from ..system import installation
from .finding import NOTE, OK, WRONG, Finding

PLUGIN = "libftn_pytorch_direct.so"
TORCHSCRIPT = "libftn_pytorch_torchscript.so"

_OTHER_WHEEL = "look for a newer ftn-pytorch, or take a torch of these"
_OPEN = """
import ctypes, sys
for file in sys.argv[1:]:
    print(file, flush=True)
    ctypes.CDLL(file)
"""
"""As programs open them: libtorch first, since libraries of a wheel have no path to it."""


def findings(info: Mapping[str, Any], core: str, torch: Any) -> Iterator[Finding]:
    """The plug-in: is it there, does its torch fit, can it be opened; and the same of TorchScript.

    In a program, for which ``info`` has "direct_torch", nothing is opened: it may have opened them, and one that uses
    MPI may start no process."""
    place = os.path.dirname(os.path.realpath(torch.__file__)) if torch else ""
    here = installation.torch_at(os.path.dirname(torch.__file__), torch.__version__) if torch else _NO_TORCH
    searched = installation.extensions_for(here, core)
    folders = [folder for folder in searched if installation.torch_of_plugin(folder)]
    found = _of_program(info) if "direct_torch" in info else _plugin(folders, place, here, core)
    if found.verdict != OK or not folders:
        yield found
        return
    files = [os.path.join(folders[0], name) for name in (PLUGIN, TORCHSCRIPT)]
    is_missing = not os.path.exists(files[1])
    failed, why = "", ""
    if "direct_torch" not in info:
        failed, why = _failure([os.path.join(place, "lib", "libtorch.so"), *files[: 1 if is_missing else 2]])
    if failed and failed != files[1]:
        yield _unusable("direct path", failed, why, "saved models cannot be loaded")
        return
    yield found
    if failed:
        yield _unusable("TorchScript", failed, why, "TorchScript files cannot be loaded")
    elif is_missing:
        text = f"{files[1]} is missing: TorchScript files run through Python"
        yield Finding("TorchScript", NOTE, text, installation.direct_cure())
    else:
        yield Finding("TorchScript", OK, f"in {folders[0]}")


_NO_TORCH = installation.Torch("", "")


def _unusable(name: str, file: str, why: str, consequence: str) -> Finding:
    text = f"{file} cannot be opened: {consequence}: {why}"
    return Finding(name, WRONG, text, installation.direct_cure(), "IMPORT")


def _failure(files: list[str]) -> tuple[str, str]:
    """The first of some libraries that a process cannot open, and why; empty texts where there is none."""
    command = [sys.executable, "-I", "-c", _OPEN, *files]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return "", ""
    lines = done.stderr.strip().splitlines()
    why = lines[-1].removeprefix("OSError: ") if lines else ""
    if done.returncode < 0:
        why = f"the process ends with {signal.Signals(-done.returncode).name}"
    return done.stdout.splitlines()[-1], why


def _of_program(info: Mapping[str, Any]) -> Finding:
    """What the library of the program that runs this says."""
    if info.get("direct_obstacle"):
        return Finding("direct path", NOTE, info["direct_obstacle"], "saved models run through Python meanwhile")
    if not info["direct_torch"]:
        text = "not built: saved models run through Python"
        return Finding("direct path", NOTE, text, installation.direct_cure())
    return Finding("direct path", OK, info["direct_torch"])


def _plugin(folders: list[str], place: str, here: installation.Torch, core: str) -> Finding:
    """Of the first folder that has a plug-in, by what is written beside it."""
    cure = installation.direct_cure()
    shipped = _shipped(core)
    if not folders:
        text = "not there: saved models run through Python"
        if not shipped or not here.version:
            return Finding("direct path", NOTE, text, cure)
        if not installation.minor_of_release(here.version):
            return Finding("direct path", NOTE, f"{shipped}, and {here.version} is no release of torch", cure)
        other = f", or {_OTHER_WHEEL}" if here.minor else ""
        return Finding("direct path", NOTE, f"{shipped}, and this is {here.text}", cure + other)
    made = installation.torch_of_plugin(folders[0])
    if made is None or not here.version:
        return Finding("direct path", NOTE, f"in {folders[0]}; there is no torch to compare its torch with")
    if (version := installation.version_of_plugin(folders[0])) != __version__:
        was = f"version {version}" if version else "an earlier version"
        return Finding("direct path", NOTE, f"in {folders[0]}, built for {was}, not {__version__}", cure)
    if not made[0] and installation.is_for(made, here):
        of_minor = f"for each release of torch {here.minor}"
        return Finding("direct path", OK, f"in {folders[0]}, compiled with torch {made[1]} {of_minor}; {shipped}")
    if (place, here.version) == (os.path.realpath(made[0]), made[1]):
        return Finding("direct path", OK, f"in {folders[0]}, built for the torch of this Python")
    was = f"torch {made[1]}{f' in {made[0]}' * bool(made[0])}, not for {here.text} in {place}"
    return Finding("direct path", NOTE, f"in {folders[0]}, built for {was}", cure)


def _shipped(core: str) -> str:
    """What a wheel brings plug-ins for; empty where it brings none."""
    minors = installation.shipped_minors(core)
    if not minors:
        return ""
    versions = " to ".join(dict.fromkeys((minors[0], minors[-1])))
    return f"the wheel has it for torch {versions}, and is tested up to {minors[-1]}"
