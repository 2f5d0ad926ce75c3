# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch doctor``, ``ftn_pytorch_diagnose``: what is found, a verdict on each, and the cure."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shlex
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import FtnPytorchError, pip_install, summary
from ..system import installation, launcher, pack, private_names, process, shared_gpu, variables
from ..tensors.device import describe_torch
from . import direct_path, program_libraries
from .finding import NOTE, OK, WRONG, Finding

_OPENMP = re.compile(r"lib(gomp|iomp5|omp)[-.\w]*\.so[.\d]*$")
_SLOW_IMPORT_S = 10.0
_UNCHECKED = 0b01
"""Flags of bytecode that holds a hash of its source, with which Python does not compare it (PEP 552)."""
_SCRIPTS_NEED = "scripts that import it, TorchScript models and saved recordings cannot be loaded"


def findings(info: Mapping[str, Any]) -> list[Finding]:
    """Look at everything.

    ``info`` is what the library knows, empty in a plain Python: "executable", "library", "reason", "adopted",
    "floating_point", "openmp_threads", "core" (path of the library), "direct_torch" and "direct_obstacle" (the torch of
    the direct path, and why it cannot be used). torch and NumPy are imported if they are installed, since only that
    shows whether they work.
    """
    known = {**process.start_info(), **info}
    core = known.get("core") or installation.library()
    found = [*_interpreter(known), *_library(core), *_bytecode(Path(__file__).parents[1]), _abi(core)]
    numpy, finding = _package("numpy", "scripts without torch cannot be given arrays", "python -m pip install numpy")
    found.append(finding)
    torch, finding = _package("torch", _SCRIPTS_NEED, "python -m pip install torch")
    found.append(finding)
    if numpy is None and torch is None:
        cure = pip_install("torch", "numpy")
        found.append(Finding("arrays", WRONG, "neither numpy nor torch can be used", cure, "IMPORT"))
    found += direct_path.findings(known, core, torch)
    if torch is not None:
        found += [_recording(), _gpu(torch), _threads(torch)]
    found.append(Finding("cores", OK, f"{process.cores()} may be used by each of {_ranks()} rank(s) on this node"))
    found += [Finding("private name", NOTE, name.text()) for name in private_names.missing()]
    for name, meant in variables.unknown(os.environ).items():
        text = "set, but nothing reads a variable of this name"
        found.append(Finding(name, NOTE, text, f"{meant} may be meant" if meant else "unset it"))
    found += _pack()
    found += _openmp()
    found += _host(known)
    return found


def _pack() -> Iterator[Finding]:
    """Can programs use the pack that is named, and does it fit?"""
    file = os.environ.get(pack.VARIABLE)
    if not file:
        return
    try:
        there = pack.Pack(file)
    except FtnPytorchError as failure:
        yield Finding("pack", WRONG, failure.text, status=failure.status)
        return
    there.close()
    if there.misfit:
        yield Finding("pack", NOTE, there.warning(there.misfit))
    else:
        yield Finding("pack", OK, f"{there.file}, {len(there.modules):,} modules of {there.script}")


def plain_text(found: list[Finding]) -> str:
    """One line per finding."""
    return "\n".join(f"{finding.verdict:<6}{finding.sentence()}" for finding in found)


def show(found: list[Finding], as_json: bool) -> None:
    """Print findings, as JSON or plain."""
    fine = all(finding.verdict != WRONG for finding in found)
    if as_json:
        print(json.dumps({"fine": fine, "findings": [asdict(finding) for finding in found]}, indent=1))
    else:
        print(plain_text(found))


def _interpreter(info: Mapping[str, Any]) -> Iterator[Finding]:
    yield Finding("python", OK, f"{platform.python_version()}, {info.get('executable') or sys.executable}")
    if info.get("reason"):
        adopted = info.get("adopted") == "1"
        yield Finding("chosen by", OK, "the program, which had started it" if adopted else info["reason"])
    else:
        yield _choice()
    if info.get("library"):
        yield Finding("libpython", OK, info["library"])
    yield Finding("prefix", OK, f"{sys.prefix} (base {sys.base_prefix})")
    for variable in ("PYTHONHOME", "PYTHONPATH"):
        if os.environ.get(variable):
            yield Finding(
                variable, NOTE, os.environ[variable], f"unset {variable} if imports fail: every Python heeds it"
            )


def _choice() -> Finding:
    """In a plain Python: would a program of this environment take this one?"""
    for variable in ("FTN_PYTORCH_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"):
        value = os.environ.get(variable)
        if not value:
            continue
        prefix = Path(value).parents[1] if variable == "FTN_PYTORCH_PYTHON" else Path(value)
        condition = "" if variable == "FTN_PYTORCH_PYTHON" else ", if it fits"
        if prefix.resolve() == Path(sys.prefix).resolve():
            return Finding("chosen by", OK, f"{variable}: programs take this Python, too{condition}")
        other = value if variable == "FTN_PYTORCH_PYTHON" else f"{value}/bin/python"
        text = f"{variable} is {value}: programs take that Python and not this one{condition}"
        return Finding("chosen by", NOTE, text, f"run the doctor with {other}")
    if installation.is_wheel():
        return Finding("chosen by", OK, "programs take this Python, too: their library lies in its environment")
    text = "this command; programs take the Python of the build, since no variable names another"
    export = f"export FTN_PYTORCH_PYTHON={shlex.quote(sys.executable)}"
    return Finding("chosen by", NOTE, text, f"{export} to make them take this one")


def _library(core: str) -> Iterator[Finding]:
    version = process.library_version()
    if version is None:
        where = f"library {core}" if core else "library not found from here"
        cure = "" if core else "name its prefix in CMAKE_PREFIX_PATH if this should look at it"
        yield Finding("ftn_pytorch", OK if core else NOTE, f"Python part {__version__}, {where}", cure)
    else:
        found = f"Python part {__version__}, library {version}{f', {core}' * bool(core)}"
        cure = "" if version == __version__ else "they must be of one version: install them together"
        yield Finding("ftn_pytorch", WRONG if cure else OK, found, cure, "VERSION" if cure else "")


def _bytecode(package: Path) -> Iterator[Finding]:
    """Files of the package that are not what runs: installed bytecode is not compared with its source."""
    for source in sorted(package.rglob("*.py")):
        compiled = Path(importlib.util.cache_from_source(str(source)))
        try:
            _, flags, made_of = struct.unpack("<4sI8s", compiled.read_bytes()[:16])
            text = source.read_bytes()
        except (OSError, struct.error):  # without bytecode, the source runs
            continue
        if flags == _UNCHECKED and made_of != importlib.util.source_hash(text):
            found = f"{source} was changed after it was installed, and is not what runs: {compiled} is"
            yield Finding("bytecode", NOTE, found, f"remove that file, or install again in place of editing {package}")


def _abi(core: str) -> Finding:
    """Does the library fit this Python? It has a half for each version that it fits."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
    if not core or not os.path.isfile(core):
        return Finding("abi", NOTE, f"this is Python {here}; there is no library to compare with")
    made = installation.pythons(core)
    if here not in made:
        other = " and ".join(made) or "none"
        cure = f"use a Python {other}, or configure the library with -DPython_EXECUTABLE={sys.executable}"
        return Finding("abi", WRONG, f"the library was built for Python {other}, this is {here}", cure, "VERSION")
    if process.library_version() is None and not _libpython():
        cure = "install it (Debian, Ubuntu: libpython3-dev), or use a Python that was built with --enable-shared"
        found = f"Python {here} on both sides, but {sys.base_prefix} has no shared libpython: programs cannot start it"
        return Finding("abi", WRONG, found, cure, "INTERPRETER")
    return Finding("abi", OK, f"the library was built for Python {here}, as this is")


def _libpython() -> bool:
    """Whether there is what programs open, looked for where they do."""
    name = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    folders = ("lib", "lib64", f"lib/{platform.machine()}-linux-gnu")
    return any((Path(sys.base_prefix) / folder / name).exists() for folder in folders)


def _package(name: str, consequence: str, cure: str) -> tuple[Any | None, Finding]:
    """Import a package if it is installed, and say what was found."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    imported_before = name in sys.modules
    begin = time.perf_counter()
    try:
        module = importlib.import_module(name)
    # Not ImportError alone: libraries that torch cannot open are an OSError.
    except Exception as failure:
        if not version:
            return None, Finding(name, NOTE, f"not installed: {consequence}", cure)
        text = f"{version} is installed and cannot be imported: {summary(failure)}"
        return None, Finding(name, WRONG, text, f"{cure} --force-reinstall", "IMPORT")
    seconds = time.perf_counter() - begin
    timing = "imported before" if imported_before else f"import took {seconds:.1f} s"
    text = f"{getattr(module, '__version__', version)}, {module.__file__}, {timing}"
    if not imported_before and seconds > _SLOW_IMPORT_S:
        return module, Finding(name, NOTE, text, "put the Python environment on a disk of the node, or into its memory")
    return module, Finding(name, OK, text)


def _recording() -> Finding:
    """Whether recorded functions run without Python here, and saved recordings in Python."""
    from ..system import extension  # needs torch

    why = extension.obstacle()
    return (
        Finding("recording", NOTE, f"off, also saved recordings in Python: {why}")
        if why
        else Finding("recording", OK, "can be used")
    )


def _gpu(torch: Any) -> Finding:
    text = describe_torch(torch).rstrip(".")
    built_for_gpu = bool(torch.version.cuda or torch.version.hip)
    has_driver = os.path.exists("/proc/driver/nvidia/version")
    if built_for_gpu and torch.cuda.device_count() == 0:
        without_driver = "there is no driver: run on a node with a GPU"
        cure = "look at nvidia-smi and CUDA_VISIBLE_DEVICES" if has_driver else without_driver
        return Finding("gpu", NOTE, text, cure)
    if not built_for_gpu and has_driver:
        return Finding("gpu", NOTE, f"{text}, but this machine has one", "install a torch that is built for CUDA")
    if built_for_gpu and (shared := shared_gpu.turns(os.environ)):
        return Finding("gpu", NOTE, f"{text}; {shared}", shared_gpu.CURE)
    if built_for_gpu and _ranks() > 1 and (hidden := shared_gpu.visible(os.environ)):
        cure = 'give each rank another GPU, or leave the variable out: device="cuda" chooses one for each rank'
        return Finding("gpu", NOTE, f"{text}; {hidden}", cure)
    return Finding("gpu", OK, text)


def _ranks() -> int:
    return launcher.local_ranks(os.environ)


def _threads(torch: Any) -> Finding:
    count, cores = torch.get_num_threads(), process.cores()
    omp = os.environ.get("OMP_NUM_THREADS") or "not set"
    text = f"{count} of torch (OMP_NUM_THREADS {omp})"
    if count > cores:
        cure = f"call ftn_pytorch_set_threads({cores}), or set OMP_NUM_THREADS={cores}"
        return Finding("torch threads", NOTE, f"{text} for {cores} core(s)", cure)
    crowded = process.too_many(count)
    if crowded:
        cure = f"call ftn_pytorch_set_threads({process.share()}), or set OMP_NUM_THREADS={process.share()}"
        return Finding("torch threads", NOTE, f"{text}: {crowded}", cure)
    return Finding("torch threads", OK, text)


def _openmp() -> Iterator[Finding]:
    """OpenMP runtimes in the process: with two, Fortran and torch have threads of their own that compete for cores."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            mapped = {line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line}
    except OSError:
        return
    runtimes = sorted({os.path.realpath(path) for path in mapped if _OPENMP.search(path)})
    text = ", ".join(runtimes) or "none"
    if len(runtimes) > 1:
        cure = "set OMP_WAIT_POLICY=passive, or OMP_NUM_THREADS so that both fit the cores"
        yield Finding("openmp", NOTE, f"{len(runtimes)} runtimes, {text}", cure)
    else:
        yield Finding("openmp", OK, text)


def _host(info: Mapping[str, Any]) -> Iterator[Finding]:
    """What only a program that runs the library can tell."""
    if info.get("openmp_threads"):
        yield Finding("openmp team size", OK, str(info["openmp_threads"]))
    if info.get("floating_point"):
        yield Finding("floating point", OK, f"{info['floating_point']} (of the program; scripts run with the default)")
    library = process.host()
    if library is not None:
        yield Finding("access to tensors", OK, library.torch_access())
        yield from program_libraries.of_process(library)
        if library.lock_is_kept():
            yield Finding("interpreter lock", NOTE, "kept by a thread between its calls; others cannot call scripts")
