# SPDX-License-Identifier: MIT
"""Runners: what a loaded file does when Fortran calls it. One class per kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import loading
from .base import Options, Runner
from .script import ScriptRunner
from .torchscript import TorchScriptRunner

__all__ = ["Runner", "open_runner"]

_RUNNERS: dict[str, Callable[[str, Options, dict[str, Any]], Runner]] = {
    loading.SCRIPT: ScriptRunner,
    loading.TORCHSCRIPT: TorchScriptRunner,
}


def open_runner(file: str, options: Mapping[str, Any], config: Mapping[str, Any]) -> Runner:
    """Load a file with the runner for its kind. Options are checked before the file is touched."""
    chosen = Options.parse(options)
    path = loading.find(file)
    return _RUNNERS[loading.identify(path)](path, chosen, dict(config))
