# SPDX-License-Identifier: MIT
"""The functions that the C++ core calls; it calls nothing else of this package.

All run with the interpreter lock held. Failures are exceptions, which ``describe_error`` turns into status and text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import errors
from .diagnosis import call_log, call_recorder, torch_profile
from .diagnosis import doctor as _diagnose
from .host import process
from .opening import open_runner
from .runners.base import Runner
from .runners.torch_functions import TorchFunctions
from .script import call_text, parameters
from .tensors import device, fortran_axes, fortran_tensors
from .values import results


def on_start(info: dict[str, str]) -> None:
    """Called once after the interpreter was started or adopted; ``info["adopted"]`` is "1" or "0"."""
    process.start(info)
    call_log.started()


def load(kind: int, file: str, options: dict[str, Any], config: dict[str, Any]) -> Runner:
    """Load a file and set it up. What it holds decides on the runner, ``kind`` is what the caller expected.

    ``options`` are those of ``runners.base.Options`` that were given, by name. Arrays in ``config`` must own their
    memory: they are kept for ``reload``, and the script is given a copy in its own framework.
    """
    recorder = call_recorder.recorder()
    state = recorder.before_load() if recorder else {}
    with process.affinity_kept():
        runner = open_runner(file, options, config)
    call_log.loaded(runner)
    if recorder:
        recorder.loaded(runner, options, config, state)
    return runner


def torch_functions(same_layout: int) -> Runner:
    """The functions of torch as a runner, for arrays of one axis order."""
    runner = TorchFunctions("same" if same_layout else "reversed")
    call_log.loaded(runner)
    return runner


def adapt(tensor: Any, dtype: str | None, is_reversed: bool, copied: bool) -> Any:
    """A tensor of another type, axis order or memory; see ``fortran_tensors.adapt``."""
    return fortran_tensors.adapt(tensor, dtype, is_reversed, copied)


def tensor_at(address: int) -> Any:
    """The tensor of libtorch that lies there; see ``fortran_tensors.tensor_at``."""
    return fortran_tensors.tensor_at(address)


def address_of(tensor: Any) -> int:
    """Where the tensor of libtorch behind a tensor lies; see ``fortran_tensors.address_of``."""
    return fortran_tensors.address_of(tensor)


def look_into(value: Any) -> tuple[Any, Any]:
    """What shows the memory of an array, and the array from then on; see ``fortran_tensors.look_into``."""
    return fortran_tensors.look_into(value)


def write_through(target: Any, value: Any, same_layout: bool) -> None:
    """Assign to a tensor made of an array: SHAPE, DTYPE, or what torch raises."""
    fortran_tensors.write_through(target, value, same_layout)


def require_writable(target: Any) -> None:
    """ARGUMENT for a tensor that is no output; see ``fortran_tensors.require_writable``."""
    fortran_tensors.require_writable(target)


def written(target: Any) -> None:
    """The core has written into the memory of a tensor; see ``fortran_tensors.written``."""
    fortran_tensors.written(target)


def describe_operands(left: Any, right: Any, same_layout: int) -> str:
    """What the operands of a failed operator were, a line each."""
    return fortran_tensors.describe_operands(left, right, bool(same_layout))


def enter_autocast(device: str, dtype: str) -> Any:
    """torch.autocast, entered; see ``fortran_axes.enter_autocast``."""
    return fortran_axes.enter_autocast(device, dtype)


def start_device(name: str) -> None:
    """Before an array on a device is first passed: DEVICE; see ``device.start``."""
    device.start(name)


def move(tensor: Any, place: str, dtype: str) -> Any:
    """A copy of an array on a device; see ``device.move``."""
    return device.move(tensor, place, dtype)


def move_back(copy: Any, tensor: Any) -> None:
    """Write a changed copy back; see ``device.move_back``."""
    device.move_back(copy, tensor)


def wait_for_device(name: str) -> None:
    """Until the work on torch's current stream is done; see ``device.wait``."""
    device.wait(name)


def enter_stream(address: int, name: str) -> Any:
    """Work on a stream of the program; see ``device.enter_stream``."""
    return device.enter_stream(address, name)


def leave_stream(entered: Any) -> None:
    """Undo that."""
    device.leave_stream(entered)


def reload(runner: Runner) -> None:
    """Read the runner's file again. On failure it stays as it was, on success every function must be bound again."""
    recorder = call_recorder.recorder()
    state = recorder.before_load() if recorder else {}
    with process.affinity_kept():
        runner.reload()
    if recorder:
        recorder.reloaded(runner, state)


def memory() -> int:
    """Bytes in use before a load, for ``collect_garbage``."""
    return process.memory()


def collect_garbage(before: int) -> None:
    """Called when the last reference to a runner, or to functions that a reload has replaced, was let go."""
    process.collect_garbage(before)


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
    recorder = call_recorder.recorder()
    if recorder:
        recorder.restored(runner)
    return -1 if found is None else found


def weights(runner: Runner, network: str) -> dict[str, Any]:
    """Parameters and buffers of a network by name, in host memory; see ``parameters.weights``."""
    return parameters.weights(runner, network)


def assign(runner: Runner, values: dict[str, Any]) -> None:
    """Set those of a saved model; see ``parameters.assign``."""
    parameters.assign(runner, values)
    recorder = call_recorder.recorder()
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
    call_log.bound(runner, name, convention)
    return function, convention.one_list, convention.has_out, convention.neglects_out


def first_call(runner: Runner, name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    """Checks before the first call of a function: SIGNATURE, SHAPE, and a warning for lone MPI ranks."""
    runner.first_call(name, args, kwargs)


def unpack(result: Any) -> tuple[tuple[str, ...] | None, tuple[Any, ...]]:
    """Names or None, and values of a result; see ``results.unpack``."""
    return results.unpack(result)


def to_host(value: Any, widened: bool) -> Any:
    """An array in host memory, of single in place of half precision if ``widened``; other values pass."""
    return results.to_host(value, widened)


def describe_error(exception: BaseException, context: str) -> tuple[str, str]:
    """Status name without prefix and text of any exception; ``context`` opens the text unless it is empty."""
    return errors.describe(exception, context)


def describe_arguments(runner: Runner, name: str, args: tuple, kwargs: dict[str, Any], failure: str) -> str:
    """What a function was called with when it failed, a line each; ``failure`` is the text about that."""
    return call_text.describe(runner.signature(name), args, kwargs, runner.layout, failure)


def set_threads(n: int) -> None:
    """Number of threads of torch, now or when a script has imported it."""
    process.set_threads(n)


def diagnose(info: dict[str, Any]) -> tuple[str, str, str]:
    """Status name of what is wrong ("" if nothing is), its sentence, and a line for each thing that was looked at.

    See ``doctor.findings`` for ``info``.
    """
    found = _diagnose.findings(info)
    wrong = [finding for finding in found if finding.verdict == _diagnose.WRONG]
    status, text = (wrong[0].status, wrong[0].sentence()) if wrong else ("", "")
    return status, text, _diagnose.plain_text(found)


def describe_call(args: tuple, kwargs: dict[str, Any], result: Any) -> str:
    """For the log: types and shapes of a call; ``NotImplemented`` stands for the result of a call that raised."""
    return call_log.describe_call(args, kwargs, result)


def ranges(runner: Runner, name: str, is_traced: bool) -> list[tuple[Callable, Callable]]:
    """Functions to call before and after each call: for NVTX where calls are traced, and for torch.profiler."""
    title = f"{runner.name}.{name}"
    wanted = [call_log.nvtx_ranges(title) if is_traced else None, torch_profile.ranges(title)]
    return [pair for pair in wanted if pair is not None]


def record_begin(runner: Runner, name: str, flags: int, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Record a call that is about to be made: an object for ``record_end``, or None if no more calls are recorded."""
    recorder = call_recorder.recorder()
    return None if recorder is None else recorder.begin(runner, name, flags, args, kwargs)


def record_end(call: Any, result: Any, failure: BaseException | None) -> None:
    """Record the outcome of a call; ``failure`` is the exception that it raised, or None."""
    recorder = call_recorder.recorder()
    if recorder is not None:
        recorder.end(call, result, failure)


def at_exit() -> None:
    """What Python does when it ends, short of finalizing. Never raises."""
    process.shut_down()
