# SPDX-License-Identifier: MIT
"""Plain Python for comparison: the same functions in a loop, with tensors made once. Same requests as bench_driver.

python floor.py <case> <path> <folder>

Paths: python (script.py), python-recorded (the same, recorded by ftn_pytorch), python-code (that as compiled code),
python-compile (torch.compile of the function), python-onnx (ONNX Runtime with bound buffers).
BENCH_PACKAGE in the environment is the folder of the package ftn_pytorch.
"""
from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness.serve import clock, reply, started  # noqa: E402

CALLS_UNTIL_RECORDED = 8


def python_onnx(case: str, size: int, folder: Path) -> tuple[Callable, Any]:
    """A function without arguments that runs the model between bound buffers, and its result."""
    import models
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    file = folder / f"{models.CASES[case].stem(case, size)}.onnx"
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    inputs = [value.numpy() for value in models.make_inputs(case, size)]
    binding = session.io_binding()
    for value, array in zip(session.get_inputs(), inputs):
        binding.bind_ortvalue_input(value.name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    first = session.run(None, {value.name: array for value, array in zip(session.get_inputs(), inputs)})[0]
    result = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros_like(first))
    binding.bind_ortvalue_output(session.get_outputs()[0].name, result)
    return functools.partial(session.run_with_iobinding, binding), result


def python(case: str, size: int, folder: Path, recorded: bool = False) -> tuple[Callable, tuple]:
    """The function of script.py, and its arguments."""
    import models
    import script

    script.ftn_pytorch_setup(case, size, folder, recorded=recorded)
    arguments = models.make_inputs(case, size)
    if case == "large_stride":
        # The same strides as a Fortran array has with layout="same".
        arguments = (arguments[0].t().contiguous().t(),)
    return (script.ftn_pytorch_train if models.CASES[case].optimizer else script.ftn_pytorch_forward), arguments


def python_recorded(case: str, size: int, folder: Path, **settings: Any) -> tuple[Callable, tuple]:
    """The same, recorded; settings: of the decorator."""
    sys.path.insert(0, os.environ["BENCH_PACKAGE"])
    from ftn_pytorch import recorded

    function, arguments = python(case, size, folder, recorded=True)
    return recorded(function, **settings), arguments


def python_compile(case: str, size: int, folder: Path) -> tuple[Callable, tuple]:
    """torch's compiler, as one uses it in Python."""
    import torch

    function, arguments = python(case, size, folder, recorded=True)
    return torch.compile(function), arguments


WAYS = {
    "python": python,
    "python-recorded": python_recorded,
    "python-code": functools.partial(python_recorded, compiled=True),
    "python-compile": python_compile,
    "python-onnx": python_onnx,
}


def be_ready(path: str, function: Any, arguments: tuple) -> None:
    """Calls until the function runs as it is to be measured. RuntimeError where it never does."""
    for _ in range(CALLS_UNTIL_RECORDED):
        function(*arguments)
    if path == "python-compile":
        return
    if not function.recording.is_ready:
        raise RuntimeError(f"it is not recorded: {function.recording.obstacle}")
    if path == "python-code":
        (variant,) = function.recording._ready
        while not variant.runner.wait(1):
            pass
        for _ in range(CALLS_UNTIL_RECORDED):
            function(*arguments)
        if not variant.runner.is_compiled():
            raise RuntimeError("it is not compiled")


def open_problem(case: str, path: str, size: int, folder: Path) -> tuple[Callable, tuple]:
    """Load and call once; the words of the reply are those of bench_driver."""
    start = clock()
    if path == "python-onnx":
        function, result = python_onnx(case, size, folder)
        arguments: tuple = ()
    else:
        function, arguments = WAYS[path](case, size, folder)
    loaded = clock()
    value = function(*arguments)
    called = clock()
    if path == "python-onnx":
        value = result.numpy()
    error, tolerance = difference(case, size, folder, value)
    if path in ("python-recorded", "python-code", "python-compile"):
        be_ready(path, function, arguments)
    reply("opened", loaded - start, called - loaded, error, tolerance)
    return function, arguments


def difference(case: str, size: int, folder: Path, value: Any) -> tuple[float, float]:
    """To the expected result, relative to its largest value."""
    import models
    import numpy

    stem = folder / f"{case}_{size}"
    if models.CASES[case].optimizer:
        expected, value = numpy.fromfile(stem / "losses.bin")[:1], numpy.array([value[1]])
    elif not (stem / "out1.bin").is_file():
        return 0, 0
    else:
        value = numpy.asarray(value)
        expected = numpy.fromfile(stem / "out1.bin", dtype=value.dtype).reshape(value.shape)
    return float(abs(value - expected).max() / abs(expected).max()), models.CASES[case].tolerance


def measure(function: Callable, arguments: tuple, samples: int, calls: int) -> list[int]:
    """Nanoseconds per call, the empty loop subtracted where a sample is more than one call."""
    times, repeated = [], range(calls)
    if calls == 1:
        for _ in range(samples):
            start = clock()
            function(*arguments)
            times.append(clock() - start)
        return times
    # The fastest of some: one that something else has slowed down would make the call too fast.
    empty = min(_empty_loop(repeated) for _ in range(10))
    for _ in range(samples):
        start = clock()
        for _ in repeated:
            function(*arguments)
        times.append(max(0, clock() - start - empty) // calls)
    return times


def _empty_loop(repeated: range) -> int:
    start = clock()
    for _ in repeated:
        pass
    return clock() - start


def main(case: str, path: str, folder: Path) -> None:
    try:
        import torch

        torch.set_num_threads(1)
    except ImportError as failure:
        reply("unavailable", failure)
        return
    started()
    function: Any = None
    arguments: tuple = ()
    for line in sys.stdin:
        command, *numbers = line.split()
        if command == "open":
            try:
                function, arguments = open_problem(case, path, int(numbers[0]), folder)
            except Exception as failure:  # reported beside the paths that work
                reply("unavailable", f"{type(failure).__name__}: {str(failure).splitlines()[0]}")
        elif command == "call":
            reply("times", *measure(function, arguments, int(numbers[0]), int(numbers[1])))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
