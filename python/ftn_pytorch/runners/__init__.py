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
from .triton import TritonRunner, is_address

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
    """Load a file, or what an address of a server names, with its runner; ``options`` are fields of ``Options``."""
    chosen = Options(**options)
    if is_address(file):
        chosen.refuse_for_saved(file)
        return TritonRunner(file, chosen, dict(config), lambda path, others: _open_file(path, others, {}))
    chosen.refuse_fallback(file)
    return _open_file(file, chosen, config)


def _open_file(file: str, options: Options, config: Mapping[str, Any]) -> Runner:
    path = loading.find(file)
    kind = formats.identify(path)
    if kind != formats.SCRIPT:
        options.refuse_for_saved(path)
    return _RUNNERS[kind](path, options, dict(config))
