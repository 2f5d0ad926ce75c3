# SPDX-License-Identifier: MIT
"""Whether ranks of a node share a GPU without MPS, NVIDIA's service by which processes compute side by side."""

from __future__ import annotations

import os
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
    if not gpus or ranks <= gpus or has_slices or os.path.exists(os.path.join(pipes, "control")):
        return ""
    number = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    return f"{ranks} ranks of this node share {number} and wait for each other at every change from one to another"
