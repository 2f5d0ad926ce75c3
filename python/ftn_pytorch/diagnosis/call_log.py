# SPDX-License-Identifier: MIT
"""What the Python side adds to FTN_PYTORCH_LOG and FTN_PYTORCH_TRACE: why things are so, what a script sees."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ..system import log, process
from ..values import dtype_name

_torch_was_described = False


def loaded(runner: Any) -> None:
    """Say what was made of a file, and which torch serves it."""
    arrays = "torch tensors" if runner.framework == "torch" else "NumPy arrays (the script does not use torch)"
    log.info(
        f"{runner.path} is a {runner.backend} by its content and extension, arrays become {arrays}; "
        f"layout {runner.layout}, mode {runner.mode}, dtype {runner.dtype}, inputs {runner.inputs}, "
        f"cast {runner.cast}, device {runner.device or 'host'}",
    )
    _describe_torch()


def _describe_torch() -> None:
    global _torch_was_described
    torch = sys.modules.get("torch")
    if torch is None or _torch_was_described:
        return
    _torch_was_described = True
    threads, access = torch.get_num_threads(), process.host().torch_access()
    log.info(f"torch {torch.__version__} from {torch.__file__}, {threads} threads, access {access}")


def bound(runner: Any, name: str, convention: Any) -> None:
    """Say how a function will be called."""
    lists = "a torch_tensor_wrap arrives as one list" if convention.one_list else "arguments are separate"
    log.info(f"{runner.name}.{name}: {lists}{', results are written to its parameter out' * convention.has_out}")


def describe_call(args: tuple, kwargs: Mapping[str, Any], result: Any) -> str:
    """Types and shapes of arguments and result as the script has them; NotImplemented for a call that raised."""
    parts = [*map(_describe, args), *(f"{name}={_describe(value)}" for name, value in kwargs.items())]
    outcome = "an exception" if result is NotImplemented else _describe(result)
    return f"({', '.join(parts)}) -> {outcome}"


def _describe(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(_describe, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_describe(item)}" for name, item in value.items()) + "}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{dtype_name(value)}{list(value.shape)}"
    return type(value).__name__


def nvtx_ranges(name: str) -> tuple[Callable[[], Any], Callable[[], Any]] | None:
    """Functions that open and close an NVTX range, None unless a torch with CUDA is imported and finds a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.version.cuda or not torch.cuda.is_available():
        return None
    return functools.partial(torch.cuda.nvtx.range_push, name), torch.cuda.nvtx.range_pop
