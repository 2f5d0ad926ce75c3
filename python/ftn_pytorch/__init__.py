# SPDX-License-Identifier: MIT
"""The Python side of ftn_pytorch: everything about running a script from Fortran that needs no C++.

Scripts need not import this package, and programs never do: the library calls it through ``ftn_pytorch._embed``.
``python -m ftn_pytorch --help`` tells what it offers on a command line.
"""

from __future__ import annotations

from ._version import __version__ as __version__

# Nothing is imported before a pack is in use (system/pack.py).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Where the names are that scripts use. Imported late: most programs need none. torch is imported by none of this.
_PLACES = {
    "Checkpoint": "checkpoint",
    "all_reduce_mean": "ranks.means",
    "average_gradients": "ranks.gradients",
    "broadcast": "ranks.broadcasts",
    "host": "system.host_values",
    "init_process_group": "ranks.process_group",
    "load_recording": "saved.saved_recording",
    "lock": "system.fair_lock",
    "procedure": "tensors.procedures",
    "rank": "ranks.own_rank",
    "recorded": "recording.function",
    "require_equal": "ranks.equality",
    "save_recording": "saved.writing",
    "world_size": "ranks.own_rank",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "kit":
        return importlib.import_module(f"{__name__}.kit")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_PLACES, "kit", "__version__"])
