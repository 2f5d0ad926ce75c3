# SPDX-License-Identifier: MIT
"""What a program asks of the package by way of the C++ core, for tests: the one place of them that knows that seam."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ftn_pytorch
from ftn_pytorch import _embed

# As tests need them
from ftn_pytorch._embed import (  # noqa: F401
    assign,
    at_exit,
    collect_garbage,
    describe_arguments,
    describe_error,
    diagnose,
    first_call,
    has,
    memory,
    on_start,
    record_begin,
    record_end,
    reload,
    save,
    set_threads,
    torch_functions,
)

if TYPE_CHECKING:
    from ftn_pytorch.runners.base import Runner

# Where a fresh process finds the package and this module
PYTHONPATH = os.pathsep.join([str(Path(ftn_pytorch.__file__).parents[1]), str(Path(__file__).parent)])

_SCRIPT, _MODEL = range(2)


def load(file: str, config: dict[str, Any] | None = None, /, **options: Any) -> Runner:
    """A file that the program expects to be a script; ``options`` are those of the call that loads."""
    return _embed.load(_SCRIPT, file, options, config or {})


def load_model(file: str, config: dict[str, Any] | None = None, /, **options: Any) -> Runner:
    """A file that the program expects to be a saved model."""
    return _embed.load(_MODEL, file, options, config or {})


def bind(runner: Runner, name: str, flags: int = 0) -> tuple[Callable, bool, bool, bool]:
    """What each call of that name calls, and how; ``flags`` are those of ``runners.base``."""
    return _embed.bind(runner, name, flags)


def function(runner: Runner, name: str, flags: int = 0) -> Callable:
    """What each call of that name calls."""
    return bind(runner, name, flags)[0]


def call(runner: Runner, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """One call, without the checks that precede the first one."""
    return function(runner, name)(*args, **kwargs)


def unpack(result: Any) -> tuple[tuple[str, ...] | None, tuple]:
    """Names and values of what a function returned, as the program gets them."""
    return _embed.unpack(result)


def to_host(value: Any, *, widened: bool) -> Any:
    """A value of ``unpack`` where the program can read it."""
    return _embed.to_host(value, widened)


def checkpoint(runner: Runner, folder: str, *, keep: int = 3, step: int = -1) -> None:
    """Write the next checkpoint of a folder and keep the newest; a step of -1 is one more than the last."""
    _embed.checkpoint(runner, folder, keep, step)


def restore(runner: Runner, place: str, *, fallback: bool = False, step: int = -1) -> int:
    """Read a file, or a checkpoint of a folder, the newest for -1. Its step, -1 if it has none."""
    return _embed.restore(runner, place, fallback, step)


def weights(runner: Runner, network: str) -> dict[str, Any]:
    """Numbers of a network of a script, for ``assign``."""
    return _embed.weights(runner, network)
