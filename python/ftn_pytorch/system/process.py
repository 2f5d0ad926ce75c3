# SPDX-License-Identifier: MIT
"""What belongs to the process as a whole: the host program, warnings, start and exit, threads, memory."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

# At once: the thread that imports it first counts as the main thread of Python.
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import require_count, summary
from . import launcher

_LITTLE_MEMORY = 8 << 20
_parsing = threading.RLock()
_ROUNDING = 1e-6


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
_held = threading.local()


def host() -> Any:
    """The module ``_ftn_pytorch``, which the library puts into ``sys.modules``; None in a plain Python."""
    # No import: finalizers ask, too, and may run inside an import that another one of this module would upset.
    return sys.modules.get("_ftn_pytorch")


def library_version() -> str | None:
    """Version of the library that runs this interpreter, None in a plain Python."""
    library = host()
    return None if library is None else library.version()


def warn(text: str, of_rank: bool = True) -> None:
    """Hand a warning to the Fortran program or to ``warnings`` where there is none, in a job with the rank."""
    held = getattr(_held, "texts", None)
    if held is not None:
        held.append(text)
        return
    rank, size = launcher.launched_rank_and_size()
    text = f"rank {rank}: {text}" if of_rank and size > 1 else text
    library = host()
    if library is None:
        import warnings

        warnings.warn(text, FtnPytorchWarning, stacklevel=2)
    else:
        # Names of files may hold what UTF-8 cannot.
        library.warn(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def warn_once(text: str, of_rank: bool = True) -> None:
    """``warn``, unless this process has been told already."""
    if text not in _state.warnings:
        _state.warnings.add(text)
        warn(text, of_rank)


@contextlib.contextmanager
def warnings_held() -> Iterator[list[str]]:
    """Warnings of this thread come into a list meanwhile: of what ranks do together one of them tells."""
    before, found = getattr(_held, "texts", None), list[str]()
    _held.texts = found
    try:
        yield found
    finally:
        _held.texts = before


def start(info: Mapping[str, str]) -> None:
    """Prepare an interpreter that the library started; an adopted one belongs to its program and stays as it is."""
    _state.start = dict(info)
    if _state.adopted:
        return
    library = host()
    if library is not None:
        # Before anything is imported from an environment: extension modules bring libraries of their own.
        sys.setdlopenflags(sys.getdlopenflags() | library.own_names_first())
    # Workers must be a Python: the running executable is the simulation, which would start all over again. Python
    # takes sys.executable when the module is imported.
    spawn = sys.modules.get("multiprocessing.spawn")
    if spawn is not None:
        spawn.set_executable(sys.executable)
    # The interpreter is never finalized, so text left in a block buffer by a crash of the simulation would be lost.
    out = sys.stdout
    if hasattr(out, "reconfigure") and not out.isatty():
        out.reconfigure(line_buffering=True)


def is_adopted() -> bool:
    """True where the program had started Python."""
    return _state.adopted


def start_info() -> dict[str, str]:
    """What the library told when it started or adopted the interpreter, empty in a plain Python."""
    return dict(_state.start)


def shut_down() -> None:
    """What Python does when it ends, short of finalizing: wait for threads, run exit functions, flush. Never raises."""
    for step in [_flush] if _state.adopted else [_join_threads, _run_exit_functions, _flush]:
        try:
            step()
        except BaseException as failure:
            _complain(failure)


def _join_threads() -> None:
    from . import private_names

    private_names.join_threads()


def _run_exit_functions() -> None:
    from . import private_names

    private_names.run_exit_functions()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _complain(failure: BaseException) -> None:
    with contextlib.suppress(BaseException):
        warn(f"while Python was shut down: {summary(failure)}")


def parse(source: str, mode: str = "exec") -> Any:
    """``ast.parse``, one thread at a time: Python 3.11 counts the depth of all trees that are being made in one place.

    Two threads may give a SystemError otherwise (https://github.com/python/cpython/issues/106905).
    """
    import ast

    with _parsing:
        return ast.parse(source, mode=mode)


def set_threads(n: int) -> None:
    """Set the number of threads torch uses, now or as soon as a script has imported torch."""
    require_count("the number of threads", n)
    _state.threads = n
    _state.threads_settled = False
    settle_threads()
    for runner in list(_state.told_of_threads):
        runner.threads_changed()


def threads_of_program() -> int | None:
    """What ``set_threads`` got last; None without such a call."""
    return _state.threads


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
    return share()


def share() -> int:
    """Cores for each thread pool of this rank.

    Those that it may run on, each divided by the ranks of the node that may run there: a launcher may have bound each
    rank to cores of its own. Where that cannot be told, all ranks count as running everywhere.
    """
    count = launcher.local_ranks(os.environ)
    if count == 1:
        return max(1, cores())
    ranks = launcher.cores_of_ranks(count)
    if len(ranks) != count:
        return launcher.cores_per_task(os.environ) or max(1, cores() // count)
    of_core = Counter(core for each in ranks for core in each)
    return max(1, int(sum(1 / max(1, of_core[core]) for core in launcher.cores()) + _ROUNDING))


def settle_threads() -> None:
    """Apply the number of threads to torch and to NumPy's OpenBLAS once they are there; called after a script ran.

    Without ``set_threads`` they keep their numbers, unless several ranks share this node and OMP_NUM_THREADS says
    nothing: then a rank uses no more than its share of the cores that it may run on.
    """
    _settle_openblas()
    torch = sys.modules.get("torch")
    if _state.threads_settled or torch is None or not hasattr(torch, "set_num_threads"):
        return
    _state.threads_settled = True
    if _state.threads is not None:
        torch.set_num_threads(_state.threads)
    elif not (_state.adopted or os.environ.get("OMP_NUM_THREADS") or launcher.local_ranks(os.environ) < 2):
        # A script may have set a smaller number.
        torch.set_num_threads(min(torch.get_num_threads(), share()))
    if not _state.adopted:
        _warn_of_too_many(torch.get_num_threads())


def restart_threads(n: int) -> None:
    """In a process that was forked for a rank: ``n`` threads, or for 0 those of ``threads``."""
    if n > 0:
        set_threads(n)
        return
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads())
    if "numpy" in sys.modules:
        from . import openblas

        openblas.set_threads(threads())


def _settle_openblas() -> None:
    is_shared = launcher.local_ranks(os.environ) > 1
    if "numpy" not in sys.modules or _state.adopted or not (is_shared or _state.threads):
        return
    from . import openblas

    if _state.threads is not None:
        openblas.set_threads(_state.threads)
    elif not any(map(os.environ.get, openblas.VARIABLES)):
        openblas.set_threads(share(), at_most=True)


def _warn_of_too_many(threads: int) -> None:
    text = too_many(threads)
    if not text or launcher.local_rank(os.environ) != 0:
        return
    text += ". Threads wait for each other there. "
    text += f"Set OMP_NUM_THREADS={share()}, or call ftn_pytorch_set_threads({share()})"
    if launcher.launched_rank_and_size()[0] == 0:
        warn_once(text, of_rank=False)
    elif (library := host()) is not None:
        library.log(1, text)  # a line of level info


def too_many(threads: int) -> str:
    """What is said where ranks of a node compute with more threads than they have cores, else an empty text."""
    ranks = launcher.local_ranks(os.environ)
    if ranks < 2 or threads <= share():
        return ""
    return f"{ranks} ranks of this node compute with {threads} threads each, and a rank has {share()} core(s)"


def busy() -> str:
    """What is said before times are measured while others compute, else an empty text."""
    load = os.getloadavg()[0]
    if load <= cores() - 0.5:
        return ""
    return (
        f"the machine is busy (load {load:.1f} on {cores()} core(s)): times are too long, those of several threads by "
        "far; OMP_NUM_THREADS=1 measures one thread"
    )


def memory() -> int:
    """Bytes in use: resident memory of the process where /proc tells, and what torch has given out on GPUs."""
    used = 0
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as sizes:
        used = int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        used += sum(cuda.memory_allocated(number) for number in range(cuda.device_count()))
    return used


def collect_garbage(before: int, at_all_events: bool) -> None:
    """Free what is left of a script, if more than a little has come since ``memory`` was ``before``.

    The functions of a script refer to its globals, which hold the functions, so that only the collector finds them. It
    needs 80 ms where torch is loaded, a small script 0.3 ms to load.
    """
    if at_all_events or memory() - before > _LITTLE_MEMORY:
        gc.collect()


@contextlib.contextmanager
def affinity_kept() -> Iterator[None]:
    """Undo what an OpenMP runtime does to the thread that loads it: OMP_PROC_BIND binds it to one core.

    A program that uses OpenMP has bound its thread before; one that does not never asked for it.
    """
    if _state.adopted:
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        if os.sched_getaffinity(0) != before:
            os.sched_setaffinity(0, before)


def cores() -> int:
    """Number of cores that this process may run on."""
    return len(launcher.cores())
