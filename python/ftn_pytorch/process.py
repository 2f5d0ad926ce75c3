# SPDX-License-Identifier: MIT
"""What belongs to the process as a whole: the host program, start and exit, torch's threads, MPI ranks."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import re
import socket
import sys
import warnings
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from . import communicator, private_names
from .errors import FtnPytorchError, summary
from .fair_lock import FairLock

# Size and rank of a job as MPI launchers tell them. SLURM_STEP_NUM_TASKS is set by srun alone; SLURM_NTASKS is also
# seen by a program that a batch script starts once.
_RANKS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)
_JOBS = (("PMIX_NAMESPACE",), ("OMPI_MCA_ess_base_jobid",), ("SLURM_JOB_ID", "SLURM_STEP_ID"))
_LOCAL_SIZES = (
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_LOCAL_SIZE",
)
# Modules by which a script may average over ranks without a torch.distributed group.
_MESSAGE_PASSING = ("mpi4py.MPI", "horovod.torch")
_GRADIENTS = f"{__package__}.gradients"

_LITTLE_MEMORY = 8 << 20


class FtnPytorchWarning(UserWarning):
    """A warning of this package where no Fortran program receives it."""


class _State:
    """What was done once in this process."""

    def __init__(self) -> None:
        self.start: dict[str, str] = {}
        self.threads: int | None = None
        self.threads_settled = False
        self.warnings: set[str] = set()
        self.told_of_threads: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def adopted(self) -> bool:
        return self.start.get("adopted") == "1"


_state = _State()


def host() -> Any:
    """The module ``_ftn_pytorch`` of the library, or None in a plain Python."""
    try:
        import _ftn_pytorch
    except ImportError:
        return None
    return _ftn_pytorch


def library_version() -> str | None:
    """Version of the library that runs this interpreter, None in a plain Python."""
    library = host()
    return None if library is None else library.version()


def warn(text: str) -> None:
    """Hand a warning, in a job with the rank, to the Fortran program or to ``warnings`` where there is none."""
    rank, size = launched_rank_and_size()
    text = f"rank {rank}: {text}" if size > 1 else text
    library = host()
    if library is None:
        warnings.warn(text, FtnPytorchWarning, stacklevel=2)
    else:
        # Names of files may hold what UTF-8 cannot.
        library.warn(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def warn_once(text: str) -> None:
    """``warn``, unless this process has been told already."""
    if text not in _state.warnings:
        _state.warnings.add(text)
        warn(text)


def lock() -> FairLock:
    """The one lock of this process for the state of scripts: checkpoints are written and restored with it.

    A thread of a script that changes state takes it (``with ftn_pytorch.lock():``). Do not call Fortran meanwhile.
    """
    return _locks[0]


_locks = [FairLock()]


def _renew_lock() -> None:
    # Another thread of the parent may have held it, which is not there in the child.
    _locks[0] = FairLock()


os.register_at_fork(after_in_child=_renew_lock)


def start(info: Mapping[str, str]) -> None:
    """Prepare an interpreter that the library started; an adopted one belongs to its program and stays as it is."""
    _state.start = dict(info)
    if _state.adopted:
        return
    # Workers must be a Python: the running executable is the simulation, which would start all over again.
    multiprocessing.set_executable(sys.executable)
    # The interpreter is never finalized, so text left in a block buffer by a crash of the simulation would be lost.
    out = sys.stdout
    if hasattr(out, "reconfigure") and not out.isatty():
        out.reconfigure(line_buffering=True)


def start_info() -> dict[str, str]:
    """What the library told when it started or adopted the interpreter, empty in a plain Python."""
    return dict(_state.start)


def shut_down() -> None:
    """What Python does when it ends, short of finalizing: wait for threads, run exit functions, flush. Never raises."""
    steps = [_flush] if _state.adopted else [private_names.join_threads, private_names.run_exit_functions, _flush]
    for step in steps:
        try:
            step()
        except BaseException as failure:
            _complain(failure)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _complain(failure: BaseException) -> None:
    with contextlib.suppress(BaseException):
        warn(f"while Python was shut down: {summary(failure)}")


def set_threads(n: int) -> None:
    """Set the number of threads torch uses, now or as soon as a script has imported torch."""
    if n < 1:
        raise FtnPytorchError("ARGUMENT", f"the number of threads is {n}, it must be at least 1")
    _state.threads = n
    _state.threads_settled = False
    settle_threads()
    for runner in list(_state.told_of_threads):
        runner.threads_changed()


def tell_threads(runner: Any) -> None:
    """Call ``runner.threads_changed()`` after each change of the number of threads, as long as the runner lives."""
    _state.told_of_threads.add(runner)


def threads() -> int:
    """Number of threads for what has a pool of its own beside torch's.

    That of ``set_threads``, else of OMP_NUM_THREADS, else this rank's share of the cores that it may run on.
    """
    if _state.threads is not None:
        return _state.threads
    # OpenMP allows one number per level of nesting.
    text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if text.isdigit() and int(text) > 0:
        return int(text)
    return max(1, cores() // local_ranks(os.environ))


def settle_threads() -> None:
    """Apply the number of threads once torch is there; called after a script ran.

    Without ``set_threads`` torch keeps its number, unless several ranks share this node and OMP_NUM_THREADS says
    nothing: then a rank uses no more than its share of the cores that it may run on.
    """
    torch = sys.modules.get("torch")
    if _state.threads_settled or torch is None or not hasattr(torch, "set_num_threads"):
        return
    _state.threads_settled = True
    if _state.threads is not None:
        torch.set_num_threads(_state.threads)
    elif not _state.adopted and not os.environ.get("OMP_NUM_THREADS"):
        share = max(1, cores() // local_ranks(os.environ))
        # A script may have set a smaller number.
        if local_ranks(os.environ) > 1 and torch.get_num_threads() > share:
            torch.set_num_threads(share)


def memory() -> int:
    """Bytes in use: resident memory of the process where /proc tells, and what torch has given out on GPUs."""
    used = 0
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as sizes:
        used = int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        used += sum(cuda.memory_allocated(number) for number in range(cuda.device_count()))
    return used


def collect_garbage(before: int) -> None:
    """Free what is left of a script, if more than a little has come since ``memory`` was ``before``.

    The functions of a script refer to its globals, which hold the functions, so that only the collector finds them. It
    needs 80 ms where torch is loaded, a small script 0.3 ms to load.
    """
    if memory() - before > _LITTLE_MEMORY:
        gc.collect()


@contextlib.contextmanager
def affinity_kept() -> Iterator[None]:
    """Undo what an OpenMP runtime does to the thread that loads it: OMP_PROC_BIND binds it to one core.

    A program that uses OpenMP has bound its thread before; one that does not never asked for it.
    """
    if _state.adopted or not hasattr(os, "sched_getaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        if os.sched_getaffinity(0) != before:
            os.sched_setaffinity(0, before)


def cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def local_ranks(environment: Mapping[str, str]) -> int:
    """Ranks on this node, 1 if no launcher says otherwise."""
    for name in _LOCAL_SIZES:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    nodes = _tasks_of_nodes(environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
    number = environment.get("SLURM_NODEID", "")
    # The largest number leaves no rank with more threads than it has cores.
    return nodes[int(number)] if number.isdigit() and int(number) < len(nodes) else max(nodes, default=1)


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


def rank_and_size() -> tuple[int, int]:
    """Those of the communicator of the module at work, or of this process; of the job without one, or with several."""
    found = communicator.current_if_clear()
    return launched_rank_and_size() if found is None else (found.rank, found.size)


def rank() -> int:
    """Rank among those that train together, from 0 on; for scripts.

    While a script is loaded it is that in the communicator of the load. Afterwards it is that in the only communicator
    of the process, ARGUMENT if there are several. Without any the launcher of the job tells, and 0 outside of MPI.
    """
    communicator.current()
    return rank_and_size()[0]


def world_size() -> int:
    """Number of ranks that train together, 1 outside of MPI; see ``rank``."""
    communicator.current()
    return rank_and_size()[1]


def with_rank(name: str) -> str:
    """Name of a file or folder in which ``%r`` is ``rank``."""
    return name.replace("%r", str(rank())) if "%r" in name else name


def job() -> str | None:
    """What tells the ranks of one MPI job from those of another, None outside of one; a best effort.

    Open MPI and Slurm give their jobs names. Other launchers do not: then ranks of one node have the same parent.
    """
    if launched_rank_and_size()[1] < 2:
        return None
    for names in _JOBS:
        if all(os.environ.get(name) for name in names):
            return ".".join([names[0], *(os.environ[name] for name in names)])
    return f"{socket.gethostname()}.{os.getppid()}"


def warn_of_lone_ranks(names: Mapping[str, Any]) -> None:
    """Warn once, on rank 0, when several ranks train and nothing is there by which they could train one network.

    ``names`` are those of the script: with a communicator ``average_gradients`` makes the group at its first call.
    """
    rank, size = rank_and_size()
    if rank != 0 or size < 2 or _in_group() or any(name in sys.modules for name in _MESSAGE_PASSING):
        return
    if communicator.current_if_clear() is None:
        warn_once(
            f"ftn_pytorch_train runs on {size} MPI ranks without a torch.distributed group and without mpi4py: each "
            "rank trains a network of its own. To train one, load with communicator= and call "
            "ftn_pytorch.average_gradients(net) after backward, or train on one rank."
        )
    elif _GRADIENTS not in sys.modules and not any(value is sys.modules[__package__] for value in names.values()):
        warn_once(
            f"ftn_pytorch_train runs on the {size} ranks of a communicator, and the script does not use "
            "average_gradients: each rank trains a network of its own. Call ftn_pytorch.average_gradients(net) after "
            "backward, or load without communicator=."
        )


def _in_group() -> bool:
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and distributed.is_initialized()
