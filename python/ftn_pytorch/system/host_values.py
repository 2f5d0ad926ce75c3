# SPDX-License-Identifier: MIT
"""What the program tells all scripts of its process: time, domain, grid, or whatever it has."""

from __future__ import annotations

from typing import Any

from ..errors import FtnPytorchError
from . import thread_recorder

_values: dict[str, Any] = {}
# Why the program cannot tell this process anything; empty in that of the program, and outside of one.
_elsewhere: list[str] = []


def host() -> dict[str, Any]:
    """What the program has told by ``ftn_pytorch_set_host`` so far, by name; empty where it has told nothing.

    Numbers, truth values and texts are those of Python. Arrays are NumPy arrays over memory of Python, with the axes
    of calls: an array (nx, ny) of Fortran is (ny, nx). All scripts have the same arrays: copy one before changing it.
    The dict is a new one each time. A name that is told again has a new value; who kept the old one keeps that.

    ARGUMENT in a process that is not that of the program: ``load(..., per=)`` and ``background=``. A function that
    calls this is not recorded: what it returns may be another in each call.
    """
    if _elsewhere:
        raise FtnPytorchError("ARGUMENT", f"ftn_pytorch.host is not known here: {_elsewhere[0]}")
    thread_recorder.refuse("it calls ftn_pytorch.host, which may have other values in the next call")
    return dict(_values)


def set_values(values: dict[str, Any]) -> None:
    """Add values, and replace those of the same name. Arrays must own their memory."""
    _values.update(values)


def is_elsewhere(where: str) -> None:
    """This process is none that the program tells anything. ``where``: a sentence."""
    _elsewhere[:] = [where]
