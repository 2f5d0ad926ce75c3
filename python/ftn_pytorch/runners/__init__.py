# SPDX-License-Identifier: MIT
"""Runners: what a loaded file does when Fortran calls it. One class per kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import formats, loading
from .aoti import AotiRunner
from .base import Options, Runner
from .exported import ExportedRunner
from .onnx import OnnxRunner
from .pickled import PickledRunner
from .script import ScriptRunner
from .torchscript import TorchScriptRunner

__all__ = ["Runner", "open_runner"]

_RUNNERS: dict[str, Callable[[str, Options, dict[str, Any]], Runner]] = {
    formats.SCRIPT: ScriptRunner,
    formats.TORCHSCRIPT: TorchScriptRunner,
    formats.EXPORTED: ExportedRunner,
    formats.AOTI: AotiRunner,
    formats.ONNX: OnnxRunner,
    formats.PICKLE: PickledRunner,
}


def open_runner(file: str, options: Mapping[str, Any], config: Mapping[str, Any]) -> Runner:
    """Load a file with the runner for its kind; ``options`` are fields of ``Options``."""
    path = loading.find(file)
    kind, chosen = formats.identify(path), Options(**options)
    if kind != formats.SCRIPT:
        chosen.refuse_for_saved(path)
    return _RUNNERS[kind](path, chosen, dict(config))
