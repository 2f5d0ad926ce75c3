# SPDX-License-Identifier: MIT
"""The functions that the C++ core calls; it calls nothing else of this package.

All run with the interpreter lock held. Failures are exceptions, which ``describe_error`` turns into status and text.

Rooms are imported by what needs them: each module costs every rank five operations on the file system at its start.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import errors
from .system import log, process, variables

if TYPE_CHECKING:
    from .diagnosis.call_recorder import Recorder
    from .runners.base import Runner

# Functions of lower rooms that the core calls as they are.
_PLACES = {
    "adapt": "tensors.fortran_tensors",
    "address_of": "tensors.fortran_tensors",
    "look_into": "tensors.fortran_tensors",
    "tensor_at": "tensors.fortran_tensors",
    "enter_autocast": "tensors.engine",
    "torch_dtype": "tensors.engine",
    "written": "tensors.engine",
    "enter_stream": "tensors.device",
    "leave_stream": "tensors.device",
    "move": "tensors.device",
    "move_back": "tensors.device",
    "serve_ranks": "tensors.device",
    "start_device": "tensors.device",
    "wait_for_device": "tensors.device",
    "to_host": "script.results",
    "unpack": "script.results",
    "weights": "script.parameters",
    "viewed": "system.private_names",
    "describe_call": "diagnosis.call_log",
    "memory": "system.process",
    "set_threads": "system.process",
    "set_values": "system.host_values",
    "remember_modes": "system.torch_modes",
    "put_modes_back": "system.torch_modes",
    "enter_modes": "system.torch_modes",
    "forget_modes": "system.torch_modes",
    "tensor_looks": "system.extension",
    "join_node": "ranks.node",
    "fork": "ranks.node",
    "become_worker": "ranks.node",
}


def __getattr__(name: str) -> Any:
    """Python asks for a name that is not there yet; from then on it is, since some are needed in each call."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{_PLACES[name]}", __package__), name)
    globals()[name] = found
    return found


def on_start(info: dict[str, str]) -> None:
    """Called once after the interpreter was started or adopted; ``info["adopted"]`` is "1" or "0"."""
    process.start(info)
    variables.tell_unknown()
    library = process.host()
    if library is not None and library.shares_names():
        from .system import program_libraries

        program_libraries.watch()


def _recorder() -> Recorder | None:
    """What records the calls of this process, None for nothing."""
    if not (variables.asks_for("RECORD") or f"{__package__}.diagnosis.call_recorder" in sys.modules):
        return None
    from .diagnosis import call_recorder

    return call_recorder.recorder()


def _log_load(runner: Runner) -> None:
    if log.is_wanted():
        from .diagnosis import call_log

        call_log.loaded(runner)


def load(kind: int, file: str, options: dict[str, Any], config: dict[str, Any]) -> Runner:
    """Load a file and set it up. What it holds decides on the runner, ``kind`` is what the caller expected.

    ``options`` are those of ``runners.options.Options`` that were given, by name. Arrays in ``config`` must own their
    memory: they are kept for ``reload``, and the script is given a copy in its own framework.
    """
    recorder = _recorder()
    state = recorder.before_load() if recorder else {}
    from .opening import open_runner
    from .system import quick_import

    with process.affinity_kept(), quick_import.modules_of_frames_told():
        runner = open_runner(file, options, config)
    _log_load(runner)
    if recorder:
        recorder.loaded(runner, options, config, state)
    return runner


def torch_functions(same_layout: int) -> Runner:
    """The functions of torch as a runner, for arrays of one axis order."""
    from .runners.torch_functions import TorchFunctions
    from .system import quick_import

    with quick_import.modules_of_frames_told():
        runner = TorchFunctions("same" if same_layout else "reversed")
    _log_load(runner)
    return runner


def reload(runner: Runner) -> None:
    """Read the runner's file again. On failure it stays as it was, on success every function must be bound again."""
    recorder = _recorder()
    state = recorder.before_load() if recorder else {}
    with process.affinity_kept():
        runner.reload()
    if recorder:
        recorder.reloaded(runner, state)


def prepare_fork() -> None:
    """Called before the first fork of a process that has loaded for the ranks of a node; see ``ranks.node``."""
    from .ranks import node
    from .script import results  # noqa: F401  each worker would import it

    node.prepare_fork()


def collect_garbage(before: int) -> None:
    """Called when the last reference to a runner, or to functions that a reload has replaced, was let go."""
    ranks = sys.modules.get(f"{__package__}.ranks.communicator")
    process.collect_garbage(before, at_all_events=ranks is not None and ranks.are_there())


def save(runner: Runner, file: str) -> None:
    """Write the model to a file."""
    runner.save(file)


def checkpoint(runner: Runner, folder: str, keep: int = 3, step: int = -1) -> None:
    """Write the next checkpoint of a folder and keep the newest ``keep``; a step of -1 is one more than the last."""
    runner.checkpoint(folder, keep, None if step == -1 else step)


def restore(runner: Runner, file: str, fallback: bool = False, step: int = -1) -> int:
    """Read a file, or a checkpoint of a folder: that of ``step``, or the newest for -1. Its step, -1 if it has none.

    fallback: a damaged checkpoint of a folder is passed over.
    """
    found = runner.restore(file, bool(fallback), None if step == -1 else step)
    recorder = _recorder()
    if recorder:
        recorder.restored(runner)
    return -1 if found is None else found


def assign(runner: Runner, values: dict[str, Any]) -> None:
    """Set those of a saved model; see ``parameters.assign``."""
    from .script import parameters

    parameters.assign(runner, values)
    recorder = _recorder()
    if recorder:
        recorder.assigned(runner, values)


def has(runner: Runner, name: str) -> bool:
    """True if the runner has a function of that name."""
    return runner.find(name) is not None


def bind(runner: Runner, name: str, flags: int) -> tuple[Callable, bool, bool, bool]:
    """(callable, one_list, has_out, neglects_out) of a function.

    callable: the script's own function object where it runs on the host.
    one_list: an argument list arrives as one Python list. has_out: there is a keyword parameter ``out``.
    neglects_out: the function cannot be writing into what it gets there.
    """
    function, convention = runner.bind(name, flags)
    if log.is_wanted():
        from .diagnosis import call_log

        call_log.bound(runner, name, convention)
    return function, convention.one_list, convention.has_out, convention.neglects_out


def first_call(runner: Runner, name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    """Checks before the first call of a function: SIGNATURE, SHAPE, and a warning for lone MPI ranks."""
    runner.first_call(name, args, kwargs)


def describe_error(exception: BaseException, context: str) -> tuple[str, str]:
    """Status name without prefix and text of any exception; ``context`` opens the text unless it is empty."""
    return errors.describe(exception, context)


def describe_arguments(runner: Runner, name: str, args: tuple, kwargs: dict[str, Any], failure: str) -> str:
    """What a function was called with when it failed, a line each; ``failure`` is the text about that."""
    from .script import call_text

    cause = "" if runner.backend == "torch" else failure  # which leads to options of load
    return call_text.describe(runner.signature(name), args, kwargs, runner.layout, cause)


def diagnose(info: dict[str, Any]) -> tuple[str, str, str]:
    """Status name of what is wrong ("" if nothing is), its sentence, and a line for each thing that was looked at.

    See ``doctor.findings`` for ``info``.
    """
    from .diagnosis import doctor as _diagnose

    found = _diagnose.findings(info)
    wrong = [finding for finding in found if finding.verdict == _diagnose.WRONG]
    status, text = (wrong[0].status, wrong[0].sentence()) if wrong else ("", "")
    return status, text, _diagnose.plain_text(found)


def ranges(runner: Runner, name: str, is_traced: bool) -> list[tuple[Callable, Callable]]:
    """Functions to call before and after each call: for NVTX where calls are traced, and for torch.profiler."""
    title = f"{runner.name}.{name}"
    wanted: list[tuple[Callable, Callable] | None] = []
    if is_traced:
        from .diagnosis import call_log

        wanted.append(call_log.nvtx_ranges(title))
    if variables.asks_for("TORCH_PROFILE"):
        from .diagnosis import torch_profile

        wanted.append(torch_profile.ranges(title))
    return [pair for pair in wanted if pair is not None]


def record_begin(runner: Runner, name: str, flags: int, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Record a call that is about to be made: an object for ``record_end``, or None if no more calls are recorded."""
    recorder = _recorder()
    return None if recorder is None else recorder.begin(runner, name, flags, args, kwargs)


def record_end(call: Any, result: Any, failure: BaseException | None) -> None:
    """Record the outcome of a call; ``failure`` is the exception that it raised, or None."""
    recorder = _recorder()
    if recorder is not None:
        recorder.end(call, result, failure)


def at_exit() -> None:
    """What Python does when it ends, short of finalizing. Never raises."""
    process.shut_down()
