# SPDX-License-Identifier: MIT
"""Whether ranks of a node share a GPU without MPS, NVIDIA's service by which processes compute side by side."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Mapping

from . import launcher, process

# One folder for each GPU of the node, also for those that CUDA_VISIBLE_DEVICES hides
_GPUS = "/proc/driver/nvidia/gpus"
# Where the daemon listens, unless CUDA_MPS_PIPE_DIRECTORY says otherwise: to it, and to us
_PIPES = "/tmp/nvidia-mps"
CURE = "Start MPS before the program, on each node: nvidia-cuda-mps-control -d"


def warn_if_slow() -> None:
    """Tell the first rank of a node once that ranks take turns on a GPU. Silent where that is not certain."""
    if launcher.local_rank(os.environ) == 0 and (text := turns(os.environ)):
        process.warn_once(f"{text}. {CURE}")


def turns(environment: Mapping[str, str]) -> str:
    """That more ranks than GPUs are on this node, and no MPS; empty where that is not certain."""
    ranks = launcher.local_ranks(environment)
    try:
        gpus = len(os.listdir(_GPUS))
    except OSError:
        return ""
    # Slices of a GPU have no folders of their own
    has_slices = "MIG-" in environment.get("CUDA_VISIBLE_DEVICES", "")
    pipes = environment.get("CUDA_MPS_PIPE_DIRECTORY", _PIPES)
    if not gpus or ranks <= gpus or has_slices or _somebody_listens(os.path.join(pipes, "control")):
        return ""
    number = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    return f"{ranks} ranks of this node share {number} and wait for each other at every change from one to another"


def visible(environment: Mapping[str, str]) -> str:
    """That a variable hides GPUs of this node, which ranks then share if all have the same; empty where none is."""
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    with contextlib.suppress(OSError):
        gpus = len(os.listdir(_GPUS))
        if chosen and "MIG-" not in chosen and (left := len(chosen.split(","))) < gpus:
            return f"CUDA_VISIBLE_DEVICES={chosen} leaves {left} of {gpus} GPUs"
    return ""


def _somebody_listens(path: str) -> bool:
    """False for what a daemon has left behind that has ended."""
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
                # EPROTOTYPE: it is there, as a socket of another type
                return end.connect_ex(path) in (0, errno.EPROTOTYPE, errno.EAGAIN)
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
