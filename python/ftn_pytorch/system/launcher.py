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
# Scripts between a launcher and its rank, such as one that sets variables.
_MOST_SCRIPTS = 3
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
    return os.sched_getaffinity(0)


_parents: list[int] = []


def of_parent(process: int) -> None:
    """This process works for a rank whose parent that is."""
    _parents[:] = [process]


def cores_of_ranks(count: int) -> list[set[int]]:
    """Cores of each of so many ranks of this node, this one among them; empty if that is not told.

    The ranks of a node are the children of the launcher there, or those are scripts that have started one rank each,
    with the cores that the launcher has given them.
    """
    ancestor = _parents[0] if _parents else os.getppid()
    for _ in range(_MOST_SCRIPTS + 1):
        children = _children(ancestor)
        if len(children) == count:
            try:
                return [os.sched_getaffinity(each) for each in children]
            except OSError:
                return []
        ancestor = _parent(ancestor)
    return []


def cores_per_task(environment: Mapping[str, str]) -> int:
    """What ``srun --cpus-per-task`` has given to each rank of this node, 0 if it was not srun or says nothing."""
    text = environment.get("SLURM_CPUS_PER_TASK", "")
    rank, size = launched_rank_and_size(environment)
    # mpirun and mpiexec start processes of their own by srun, whose variables their ranks have, too
    is_by_srun = (environment.get("SLURM_PROCID"), environment.get("SLURM_STEP_NUM_TASKS")) == (str(rank), str(size))
    return min(int(text), len(cores())) if is_by_srun and text.isdigit() else 0


def _parent(process: int) -> int:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _children(process: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    except OSError:
        return []
    return found


def _tasks_of_nodes(text: str) -> list[int]:
    """Tasks of each node as Slurm lists them: "4(x2),3" is 4, 4, 3. Empty for what is no such list."""
    parts = [re.fullmatch(r"([0-9]+)(?:\(x([0-9]+)\))?", part) for part in text.split(",")]
    return [int(part[1]) for part in parts if part for _ in range(int(part[2] or 1))] if all(parts) else []


def launched_rank_and_size(environment: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Rank and number of ranks of this process in its job, (0, 1) if no launcher tells."""
    for size_name, rank_name in _RANKS:
        size, rank = environment.get(size_name, ""), environment.get(rank_name, "")
        if size.isdigit() and rank.isdigit():
            return int(rank), int(size)
    return 0, 1


def job() -> str | None:
    """What tells the ranks of one MPI job from those of another, None outside of one; a best effort.

    Open MPI and Slurm give their jobs names. Other launchers do not: then ranks of one node have the same parent.
    What is no plain ASCII, or is escaped in JSON, stands there as in a URL: src/base/rank.cpp writes the same text.
    """
    if launched_rank_and_size()[1] < 2:
        return None
    for names in _JOBS:
        if all(os.environ.get(name) for name in names):
            return _plain(".".join([names[0], *(os.environ[name] for name in names)]))
    import socket

    return _plain(f"{socket.gethostname()}.{os.getppid()}")


def _plain(name: str) -> str:
    return re.sub(rb'[^ -~]|["\\]', lambda found: b"%%%02X" % found[0][0], os.fsencode(name)).decode("ascii")
