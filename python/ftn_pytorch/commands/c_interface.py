# SPDX-License-Identifier: MIT
"""The library called from Python as a Fortran program calls it, for commands that try and measure scripts.

The calls go through the C interface (``ftn_pytorch.h``), so every check and every conversion is the one that a Fortran
program meets. Arrays are NumPy arrays in C order: ``x[i, j]`` here is ``x(j, i)`` in Fortran, without a copy.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import FtnPytorchError
from ..system import installation, process
from ..values import dtypes

_ARGUMENT = ctypes.c_int64 * 32  # fpt_arg: 256 bytes that only the library looks into
_IN, _OUT = 0, 1
_MAX_RANK = 7
_WARNING = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

Array = tuple[str, Any]
"""Name, empty for an argument that is passed by position, and a NumPy array in C order."""


@dataclass(frozen=True)
class Result:
    """What a function returned: shape in the axis order of Python, type as torch calls it, "number" or "text"."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def is_array(self) -> bool:
        """Whether an array can receive it."""
        return self.dtype not in ("number", "text")

    def zeros(self) -> Any:
        """A NumPy array that takes such a result."""
        import numpy

        return numpy.zeros(self.shape, self.dtype)


class Library:
    """libftn_pytorch in this process; it adopts the Python that runs."""

    def __init__(self) -> None:
        path = installation.library()
        if not path:
            raise FtnPytorchError(
                "FILE",
                "the library libftn_pytorch.so is not found. Install it with 'cmake --install', and name its prefix in "
                "CMAKE_PREFIX_PATH",
            )
        self.c = ctypes.CDLL(path)
        self.c.fpt_status_name.restype = ctypes.c_char_p
        for function in ("error_text", "module_free", "results_free", "tensor_free"):
            getattr(self.c, f"fpt_{function}").restype = None
        self.warnings: list[str] = []
        self._handler = _WARNING(lambda text, length: self.warnings.append(_text(text, length)))
        self.c.fpt_on_warning(self._handler)

    def check(self, status: int) -> None:
        """FtnPytorchError for a status that is not FPT_OK."""
        if status:
            name = self.c.fpt_status_name(status).decode().removeprefix("FTN_PYTORCH_ERR_")
            raise FtnPytorchError(name, self.text_of(self.c.fpt_error_text))

    def text_of(self, function: Callable[..., Any], *arguments: Any) -> str:
        """What a function gives as an address and a length."""
        text, length = ctypes.c_void_p(), ctypes.c_int64()
        self.check(function(*arguments, ctypes.byref(text), ctypes.byref(length)))
        return _text(text.value, length.value)

    def load(self, file: str, is_model: bool, options: Mapping[str, Any], setup: Mapping[str, Any]) -> Module:
        """Load a script or a saved model; what ``fpt_module_load`` fails with."""
        return Module(self, file, is_model, self.arguments(options.items()), self.arguments(setup.items()))

    def arguments(self, values: Iterable[Array], access: int = _IN) -> Any:
        """Arrays, numbers and texts as a C array of descriptions. They do not keep the memory of arrays alive."""
        values = list(values)
        made = (_ARGUMENT * len(values))()
        for each, (name, value) in zip(made, values):
            self._describe(each, value, access)
            if name:
                word = name.encode()
                self.check(self.c.fpt_arg_name(ctypes.byref(each), word, ctypes.c_int64(len(word))))
        return made

    def _describe(self, made: Any, value: Any, access: int) -> None:
        at = ctypes.byref(made)
        if isinstance(value, str):
            word = value.encode()
            return self.check(self.c.fpt_arg_text(at, word, ctypes.c_int64(len(word)), _IN))
        number: Any
        if isinstance(value, (bool, int, float)):
            number = ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value)
            kind, extents = "float64" if isinstance(value, float) else "int64", ()
            number = ctypes.byref(number)
        else:
            number, kind, extents = ctypes.c_void_p(value.ctypes.data), value.dtype.name, value.shape[::-1]
        word, rank = kind.encode(), len(extents)
        shape = (ctypes.c_int64 * max(rank, 1))(*extents)
        return self.check(self.c.fpt_arg_memory(at, number, word, ctypes.c_int64(len(word)), rank, shape, access))


class Module:
    """A loaded script or saved model."""

    def __init__(self, library: Library, file: str, is_model: bool, options: Any, setup: Any) -> None:
        self._library, self._c = library, library.c
        handle, word = ctypes.c_int64(), file.encode()
        length = ctypes.c_int64(len(word))
        library.check(
            self._c.fpt_module_load(
                ctypes.byref(handle), int(is_model), word, length, options, len(options), setup, len(setup)
            )
        )
        self._handle = handle

    @property
    def backend(self) -> str:
        """What runs the file: "script", "direct", "onnx", ..."""
        return self._library.text_of(self._c.fpt_module_backend, self._handle)

    def has(self, function: str) -> bool:
        """Whether there is such a function."""
        found, word = ctypes.c_int32(), function.encode()
        self._library.check(self._c.fpt_module_has(self._handle, word, ctypes.c_int64(len(word)), ctypes.byref(found)))
        return bool(found.value)

    def free(self) -> None:
        """Let the module go."""
        self._c.fpt_module_free(self._handle)

    def forward(self, inputs: Sequence[Array]) -> list[Result]:
        """Call ``ftn_pytorch_forward``; what it returned."""
        results, given = ctypes.c_int64(), self._library.arguments(inputs)
        try:
            self._library.check(
                self._c.fpt_module_forward(self._handle, given, len(given), None, 0, ctypes.byref(results), 0)
            )
            return self._described(results)
        finally:
            self._c.fpt_results_free(results)

    def forward_call(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """A function that calls ``ftn_pytorch_forward`` and has the results delivered into ``outputs``."""
        given, taken = self._library.arguments(inputs), self._library.arguments(outputs, _OUT)
        function, check, counts = self._c.fpt_module_forward, self._library.check, (len(given), len(taken))

        def call(_kept: object = (inputs, outputs)) -> None:
            check(function(self._handle, given, counts[0], taken, counts[1], None, 0))

        return call

    def train_call(self, inputs: Sequence[Array], targets: Sequence[Array]) -> Callable[[], tuple[bool, float]]:
        """A function that calls ``ftn_pytorch_train``; its result: finished, loss."""
        given, aims = self._library.arguments(inputs), self._library.arguments(targets)
        function, check, counts = self._c.fpt_module_train, self._library.check, (len(given), len(aims))
        completed, loss = ctypes.c_int32(), ctypes.c_double()
        places = ctypes.byref(completed), ctypes.byref(loss)

        def call(_kept: object = (inputs, targets)) -> tuple[bool, float]:
            check(function(self._handle, given, counts[0], aims, counts[1], *places))
            return bool(completed.value), loss.value

        return call

    def _described(self, results: ctypes.c_int64) -> list[Result]:
        check, count = self._library.check, ctypes.c_int32()
        check(self._c.fpt_results_count(results, ctypes.byref(count)))
        return [self._result(results, index) for index in range(1, count.value + 1)]

    def _result(self, results: ctypes.c_int64, index: int) -> Result:
        check, title = self._library.check, self._library.text_of(self._c.fpt_results_name, results, index)
        tensor, dtype, rank = ctypes.c_int64(), ctypes.c_int32(), ctypes.c_int32()
        extents, device = (ctypes.c_int64 * _MAX_RANK)(), ctypes.create_string_buffer(32)
        if self._c.fpt_results_get(results, index, ctypes.byref(tensor)):
            text, length = ctypes.c_void_p(), ctypes.c_int64()
            is_text = not self._c.fpt_results_text(results, index, ctypes.byref(text), ctypes.byref(length))
            return Result(title, (), "text" if is_text else "number")
        try:
            check(self._c.fpt_tensor_info(tensor, ctypes.byref(dtype), ctypes.byref(rank), extents, device))
        finally:
            self._c.fpt_tensor_free(tensor)
        shape = tuple(extents[: rank.value])[::-1]
        return Result(title, shape, dtypes.OF_CODE[dtype.value])


def _text(address: int | None, length: int) -> str:
    return ctypes.string_at(address, length).decode("utf-8", "replace") if address else ""


def note_others() -> None:
    """Say on standard error that others compute, before times are measured."""
    if note := process.busy():
        print(f"note: {note}", file=sys.stderr)


def seconds_per_call(calls: Sequence[Callable[[], Any]], budget: float = 0.3, rounds: int = 7) -> list[float]:
    """Median time of a call of each function, in seconds. They take turns, so that a busy machine meets all alike.

    ``budget``: seconds for each function in all. Each is called at least three times before its time is taken.
    """
    counts = []
    for call in calls:
        for _ in range(2):
            call()
        begin = time.perf_counter()
        call()
        counts.append(max(1, int(budget / rounds / max(time.perf_counter() - begin, 1e-7))))
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, count, taken in zip(calls, counts, times):
            begin = time.perf_counter()
            for _ in range(count):
                call()
            taken.append((time.perf_counter() - begin) / count)
    return [sorted(taken)[rounds // 2] for taken in times]
