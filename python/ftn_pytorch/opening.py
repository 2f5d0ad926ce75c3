# SPDX-License-Identifier: MIT
"""Opening a file: the only module that knows all runners, and the one way to load a script."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from .runners.base import Options, Runner
from .runners.models import formats
from .runners.models.aoti import AotiRunner
from .runners.models.exported import ExportedRunner
from .runners.models.onnx import OnnxRunner
from .runners.models.pickled import PickledRunner
from .runners.models.recording import RecordingRunner
from .runners.models.torchscript import TorchScriptRunner
from .runners.models.triton import TritonRunner, is_address
from .runners.script import ScriptRunner
from .script import loading, parameters


def open_runner(file: str, options: Mapping[str, Any], config: Mapping[str, Any]) -> Runner:
    """Load a file, or what an address of a server names, with its runner; ``options`` by name, see ``Options``."""
    chosen = Options.of(options)
    if is_address(file):
        chosen.refuse_for_saved(file)
        return TritonRunner(file, chosen, dict(config), lambda path, others: _open_file(path, others, {}))
    chosen.refuse_fallback(file)
    return _open_file(file, chosen, config)


def open_for_child(file: str, options: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[Runner, list[Any]]:
    """A script in the process that trains for another one, and each Background that it made."""
    runner: Any = open_runner(file, options, config)
    return runner, runner.made


def _open_file(file: str, options: Options, config: Mapping[str, Any]) -> Runner:
    path = loading.find(file)
    kind = formats.identify(path)
    if kind != formats.SCRIPT:
        options.refuse_for_saved(path)
    return _RUNNERS[kind](path, options, dict(config))


def _optimizers() -> Callable:
    from .runners.objects import optimizers

    return optimizers.for_model


def _averages() -> Callable:
    from .runners.objects import averages

    return averages.for_model


_RUNNERS: dict[str, Callable[[str, Options, dict[str, Any]], Runner]] = {
    formats.SCRIPT: functools.partial(ScriptRunner, opens=open_for_child),
    formats.TORCHSCRIPT: TorchScriptRunner,
    formats.EXPORTED: ExportedRunner,
    formats.AOTI: AotiRunner,
    formats.ONNX: OnnxRunner,
    formats.PICKLE: PickledRunner,
    formats.RECORDING: RecordingRunner,
}
parameters.makers |= {parameters.OPTIMIZER: _optimizers, parameters.AVERAGED: _averages}
