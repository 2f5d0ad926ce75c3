# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch build-direct``: compile what is linked with libtorch, for the torch of this environment.

That is the plug-in of the direct path (saved models without Python), which is linked with the library of the wheel,
too, and the extension that runs recorded steps. Each fits one torch, so a wheel brings their sources. A build of the
whole library makes both itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from ..checkpoint.file import locked
from ..errors import FtnPytorchError, pip_install
from ..system import files, installation

_FILES = ("*.so", "libftn_pytorch_direct.torch")
"""What is built. The last one names the torch, and the library looks at it first: so it is also written last."""

_LOAD = """
import ctypes, sys, torch
extension, plugin, *others = map(ctypes.CDLL, sorted(sys.argv[1:]))
plugin.fpt_saved_modules_get, extension.PyInit__ftn_pytorch_recording
"""
_LAST_LINES = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--into",
        metavar="FOLDER",
        help=f"folder for the result, which programs read where {installation.EXTENSIONS} names it; "
        f"default: that variable, or beside the library in this environment",
    )
    parser.add_argument(
        "-j", "--jobs", type=int, default=os.cpu_count(), help="compilers at a time (default: one a core)"
    )


def run(chosen: argparse.Namespace) -> int:
    """Build, look whether the result can be loaded, and put it into its place."""
    source = installation.source()
    if source is None:
        raise FtnPytorchError(
            "ARGUMENT",
            "only a wheel (pip install ftn-pytorch) brings the sources that this command compiles; for a library that "
            "was built with CMake, " + installation.direct_cure(),
        )
    if importlib.util.find_spec("torch") is None:
        raise FtnPytorchError("IMPORT", f"{sys.executable} has no torch: {pip_install('torch')}")
    folder = Path(chosen.into or os.environ.get(installation.EXTENSIONS) or os.path.dirname(installation.library()))
    _require_place(folder)
    cmake = _program("cmake", "cmake")
    ninja = _program("ninja", "ninja")
    if chosen.jobs < 1:
        raise FtnPytorchError("ARGUMENT", f"--jobs is {chosen.jobs}: at least one compiler must run")
    wish = os.environ.get("CXX", "")
    programs = wish.split()[:1] or ["c++", "g++", "clang++"]
    if not any(map(shutil.which, programs)):
        raise FtnPytorchError(
            "FILE", f"there is no C++ compiler{f' {wish}' * bool(wish)}: install g++ 10 or newer, or name one in CXX"
        )
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        options = ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}")
        settings = ("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_INSTALL_LIBDIR=lib")
        purpose = (
            "-DFTN_PYTORCH_DIRECT=ON",
            "-DFTN_PYTORCH_EXTENSIONS_ONLY=ON",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DFTN_PYTORCH_CORE={installation.library()}",
        )
        print("compiling for this torch: two minutes on two free cores", file=sys.stderr, flush=True)
        _call([cmake, "-S", str(source), "-B", temporary, *options, *settings, *purpose])
        _call([cmake, "--build", temporary, "--parallel", str(chosen.jobs)])
        made = [file for pattern in _FILES for file in Path(temporary, "lib").glob(pattern)]
        _call([sys.executable, "-c", _LOAD, *(str(file) for file in made if file.suffix == ".so")])
        for file in made:
            there = str(folder.absolute() / file.name)
            with locked(there), files.completed(there) as place:  # programs may start meanwhile
                shutil.copyfile(file, place)
    torch = installation.torch_of_plugin(str(folder))
    assert torch is not None
    print(f"built for torch {torch[1]} in {time.perf_counter() - begin:.0f} s: {folder}")
    if str(folder) not in installation.extension_folders(""):
        print(f"export {installation.EXTENSIONS}={folder.absolute()}")
    return 0


def _require_place(folder: Path) -> None:
    """FILE where nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files.require_place(str(folder / _FILES[-1]))
    except (FtnPytorchError, OSError) as failure:
        raise FtnPytorchError(
            "FILE",
            f"nothing can be written to {folder} ({failure}): name a folder with --into, and the same one in "
            f"{installation.EXTENSIONS} for programs",
        ) from None


def _program(name: str, package: str) -> str:
    """A program of PATH, or of a package that pip has installed for this Python."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(name)
    if found is None:
        raise FtnPytorchError("FILE", f"there is no {name}: {pip_install(package)}")
    return found


def _call(command: Sequence[str]) -> None:
    """Run a part of the build, with its progress on a terminal; INTERNAL with its last lines if it fails."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            last.append(line)
            if line.startswith("[") and sys.stderr.isatty():
                print(f"\r{line[: line.find(']') + 1]}", end="", file=sys.stderr, flush=True)
    if running.returncode != 0:
        raise FtnPytorchError("INTERNAL", f"{shlex.join(command)} failed:\n{''.join(last)}")
