# SPDX-License-Identifier: MIT
"""A plan on its way through the compiler, beside the program."""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from ..errors import FtnPytorchError, summary
from .plan import Plan

_PACKAGE = __package__.rpartition(".")[0]


def folder() -> str:
    """Where compiled code stays, for the ranks of a node and the next run. FILE where others could write, or nobody."""
    chosen = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    found = os.path.join(chosen or tempfile.gettempdir(), f"ftn_pytorch_{os.getuid()}")
    try:
        os.makedirs(found, mode=0o700, exist_ok=True)
        about = os.stat(found)
    except OSError as failure:
        text = f"compiled code stays in {found}, which cannot be made: {failure.strerror}"
        raise FtnPytorchError("FILE", f"{text}; set TORCHINDUCTOR_CACHE_DIR to another folder") from failure
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise FtnPytorchError(
            "FILE", f"{found} has code that is loaded, and others may write there: chmod go-w {found}"
        )
    return found


class Compilation:
    """``code`` is there when it is done, ``failure`` says why it never will be. load: makes it of the file."""

    def __init__(self, plan: Plan, load: Callable[[str], Any]) -> None:
        self._load = load
        self.code: Any = None
        self.failure = ""
        self._thread = threading.Thread(target=self._compile, args=(plan,), daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """True once it is done."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _compile(self, plan: Plan) -> None:
        try:
            self.code = self._load(compiled(plan))
        except Exception as failure:
            self.failure = failure.text if isinstance(failure, FtnPytorchError) else summary(failure)


def compiled(plan: Plan) -> str:
    """The package of a plan, made by a process of its own unless it is there. FILE, PYTHON with what that says."""
    place = folder()
    path = os.path.join(place, f"{plan.key()}.pt2")
    if not os.path.exists(path):
        _make_elsewhere(plan, place)
    return path


def _make_elsewhere(plan: Plan, place: str) -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", f"{_PACKAGE}.compiling", place]
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    atexit.register(child.kill)
    _, told = child.communicate(pickle.dumps(plan))
    atexit.unregister(child.kill)
    lines = told.decode(errors="replace").splitlines()
    if child.returncode != 0:
        raise FtnPytorchError("PYTHON", lines[-1] if lines else f"exit code {child.returncode}")
