# SPDX-License-Identifier: MIT
"""What the launcher of an MPI job tells its processes: rank, size, ranks on this node, which job it is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

# Size and rank of a job as MPI launchers tell them. SLURM_STEP_NUM_TASKS is set by srun alone; SLURM_NTASKS is also
# seen by a program that a batch script starts once.
_RANKS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)
_JOBS = (("PMIX_NAMESPACE",), ("OMPI_MCA_ess_base_jobid",), ("SLURM_JOB_ID", "SLURM_STEP_ID"))
_LOCAL_RANKS = (
    *("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
    *("PALS_LOCAL_RANKID", "LOCAL_RANK"),
)
_LOCAL_SIZES = (
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_LOCAL_SIZE",
)


def local_ranks(environment: Mapping[str, str]) -> int:
    """Ranks on this node, 1 if no launcher says otherwise."""
    for name in _LOCAL_SIZES:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    nodes = _tasks_of_nodes(environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
    number = environment.get("SLURM_NODEID", "")
    # The largest number leaves no rank with more threads than it has cores.
    return nodes[int(number)] if number.isdigit() and int(number) < len(nodes) else max(nodes, default=1)


def local_rank(environment: Mapping[str, str]) -> int:
    """Number of this rank on its node, 0 if no launcher tells. As in src/base/rank.cpp."""
    values = (environment.get(name, "") for name in _LOCAL_RANKS)
    return next((int(value) for value in values if value.isdigit()), 0)


def cores() -> set[int]:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


_parents: list[int] = []


def of_parent(process: int) -> None:
    """This process works for a rank whose parent that is."""
    _parents[:] = [process]


def cores_of_ranks() -> list[set[int]]:
    """Cores of each process that the parent of this rank has started, this one among them; empty if that is not told.

    The parent of the ranks of a node is the launcher there, unless they are started by a script.
    """
    tasks = f"/proc/{_parents[0] if _parents else os.getppid()}/task"
    try:
        children = []
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/children", encoding="ascii") as file:
                children += file.read().split()
        return [os.sched_getaffinity(int(each)) for each in children]
    except (OSError, AttributeError):
        return []


def _tasks_of_nodes(text: str) -> list[int]:
    """Tasks of each node as Slurm lists them: "4(x2),3" is 4, 4, 3. Empty for what is no such list."""
    parts = [re.fullmatch(r"([0-9]+)(?:\(x([0-9]+)\))?", part) for part in text.split(",")]
    return [int(part[1]) for part in parts if part for _ in range(int(part[2] or 1))] if all(parts) else []


def launched_rank_and_size() -> tuple[int, int]:
    """Rank and number of ranks of this process in its job, (0, 1) if no launcher tells."""
    for size_name, rank_name in _RANKS:
        size, rank = os.environ.get(size_name, ""), os.environ.get(rank_name, "")
        if size.isdigit() and rank.isdigit():
            return int(rank), int(size)
    return 0, 1


def job() -> str | None:
    """What tells the ranks of one MPI job from those of another, None outside of one; a best effort.

    Open MPI and Slurm give their jobs names. Other launchers do not: then ranks of one node have the same parent.
    """
    if launched_rank_and_size()[1] < 2:
        return None
    for names in _JOBS:
        if all(os.environ.get(name) for name in names):
            return ".".join([names[0], *(os.environ[name] for name in names)])
    import socket

    return f"{socket.gethostname()}.{os.getppid()}"
