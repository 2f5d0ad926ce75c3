# SPDX-License-Identifier: MIT
"""The Python side of ftn_pytorch: everything about running a script from Fortran that needs no C++.

Scripts need not import this package, and programs never do: the library calls it through ``ftn_pytorch._embed``.
``python -m ftn_pytorch --help`` tells what it offers on a command line.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Late, because most programs never write a checkpoint. torch is imported by none of this.
    if name == "Checkpoint":
        from .checkpoint import Checkpoint

        return Checkpoint
    if name == "lock":
        from .process import lock

        return lock
    if name in ("rank", "world_size"):
        from . import process

        return getattr(process, name)
    if name == "procedure":
        from .procedures import procedure

        return procedure
    if name == "average_gradients":
        from .gradients import average_gradients

        return average_gradients
    if name == "init_process_group":
        from .groups import init_process_group

        return init_process_group
    if name == "require_equal":
        from .agreement import require_equal

        return require_equal
    if name == "recorded":
        from .recording import recorded

        return recorded
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
