# SPDX-License-Identifier: MIT
"""Failures: the exception that carries a status, and any exception as status and text."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import traceback

_PACKAGE = os.path.dirname(__file__) + os.sep  # as code objects have it, even with ".." in it
# It calls a function of torch for the caller, whose arguments that refuses
_PASS_ON = os.path.join(_PACKAGE, "runners", "torch_functions.py")
_MOST_LISTED = 5


OF_MAIN = (
    "A class of a script that was run directly is looked for in __main__: put it into a module beside the file, and "
    "save the model again."
)
"""What to do about an object whose class is not where its pickle says."""
OF_ENGINE = (
    "torch has given its threads for GPUs to what computed gradients in this process before Python was started: load a "
    "script before the first gradient of a tensor or a saved model is computed."
)
"""What to do where the autograd of Python finds no threads for GPUs."""


class FtnPytorchError(Exception):
    """A failure whose status is known.

    ``status`` is the name of a status of ``ftn_pytorch.h`` without its prefix, such as ``"HOOK"``. ``text`` says what
    is wrong, the value found and what to do; nothing is added to it but the place of the call.
    """

    def __init__(self, status: str, text: str) -> None:
        super().__init__(status, text)
        self.status = status
        self.text = text

    def __str__(self) -> str:
        return self.text


def did_you_mean(found: str, valid: Iterable[str]) -> str:
    """ "; did you mean 'x'?" where a valid name is close to the one that was found, else an empty text."""
    import difflib

    close = difflib.get_close_matches(found, list(valid), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def require_count(what: str, value: Any) -> None:
    """ARGUMENT for what is no whole number of at least 1; ``what`` opens the text, as "Replay: capacity" does."""
    try:
        is_count = operator.index(value) >= 1
    except TypeError:
        is_count = False
    if not is_count:
        raise FtnPytorchError("ARGUMENT", f"{what} is {value!r}, it must be a whole number of at least 1")


def pip_install(*packages: str) -> str:
    """The command for a shell that installs packages for this Python."""
    import shlex

    return shlex.join([sys.executable, "-m", "pip", "install", *packages])


def missing_package(what: str, failure: object, *packages: str) -> FtnPytorchError:
    """IMPORT: ``what`` needs packages, as pip calls them, that cannot be imported; ``failure`` is why."""
    return FtnPytorchError(
        "IMPORT",
        f"{what} needs {', '.join(packages)}, which cannot be imported ({failure}). Install with\n"
        f"  {pip_install(*packages)}",
    )


def imported(module: str, what: str, *packages: str) -> Any:
    """A module that not everybody has; as ``missing_package`` where it cannot be imported."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as failure:
        raise missing_package(what, failure, *packages) from failure


def describe(exception: BaseException, context: str) -> tuple[str, str]:
    """Status name and text of any exception; never raises.

    ``context`` says where it happened ("ftn_pytorch_forward of model.py"); it opens the text unless it is empty.
    """
    try:
        status, text = _describe(exception)
    except BaseException as failure:
        # Exceptions of a script run code of the script when they are printed.
        status = "PYTHON"
        text = f"{type(exception).__name__} (it cannot be described: {type(failure).__name__})"
    return status, f"{context}: {text}" if context else text


def _describe(exception: BaseException) -> tuple[str, str]:
    if isinstance(exception, FtnPytorchError):
        return exception.status, exception.text
    if is_of_memory(exception):
        return "MEMORY", report(exception)
    return "PYTHON", report(exception)


def is_of_memory(exception: BaseException) -> bool:
    """True where memory has run out, on the host or on a device."""
    if isinstance(exception, MemoryError):
        return True
    # On a device torch has a type for it; on the host, and out of TorchScript, it is a RuntimeError like any other.
    kind = getattr(sys.modules.get("torch"), "OutOfMemoryError", None)
    if isinstance(kind, type) and isinstance(exception, kind):
        return True
    text = str(exception) if isinstance(exception, RuntimeError) else ""
    return "DefaultCPUAllocator: " in text or "CUDA out of memory. " in text


def report(exception: BaseException) -> str:
    """One line that says what happened, followed by the traceback if there is one."""
    first, shown = summary(exception), trace(exception)
    text = shown if shown.startswith(first) else f"{first}\n{shown}"
    if isinstance(exception, AttributeError) and "__main__'" in str(exception):
        return f"{text}\n{OF_MAIN}"
    return f"{text}\n{OF_ENGINE}" if "device_ready_queues_" in str(exception) else text


def summary(exception: BaseException) -> str:
    """Type and message of an exception in one line."""
    if isinstance(exception, SystemExit):
        return f"the script asked Python to exit (SystemExit: {exception.code}); raise an exception to report a failure"
    if isinstance(exception, SyntaxError):
        return f"{type(exception).__name__}: {exception}"
    return message(exception).partition("\n")[0]


def listed(names: Sequence[Any]) -> str:
    """The first ones, and how many more there are."""
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(map(str, names[:_MOST_LISTED])) + more


def message(exception: BaseException) -> str:
    """Type and message as Python prints them: for a SyntaxError with file, line and place."""
    import traceback

    lines = traceback.TracebackException.from_exception(exception, lookup_lines=False).format_exception_only()
    return "".join(lines).rstrip("\n")


def trace(exception: BaseException) -> str:
    """Traceback with chained exceptions, without the frames of this package and of Python's import machinery."""
    import traceback

    described = traceback.TracebackException.from_exception(exception)
    _drop_own_frames(described)
    return "".join(described.format()).rstrip("\n")


def _drop_own_frames(described: traceback.TracebackException) -> None:
    pending, of_methods = [described], _file_of_methods()
    while pending:
        one = pending.pop()
        frames = [frame for frame in one.stack if not _is_own(frame.filename)]
        if frames and frames[0].filename == of_methods:
            frames = one.stack[:] = []  # the core calls them, and nobody else is between
        # A defect of this package has no other frames; then they are all there is to go by.
        if frames or (one.stack and one.stack[-1].filename == _PASS_ON):
            one.stack[:] = frames
        related = (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ()))
        pending.extend(other for other in related if other is not None)


def _file_of_methods() -> str | None:
    """Where torch has methods of tensors that it has written in Python, 2 - x and x**y among them."""
    method = getattr(getattr(sys.modules.get("torch"), "Tensor", None), "backward", None)
    return getattr(getattr(method, "__code__", None), "co_filename", None)


def _is_own(filename: str) -> bool:
    return filename.startswith((_PACKAGE, "<frozen importlib"))
