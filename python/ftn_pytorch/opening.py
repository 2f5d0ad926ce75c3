# SPDX-License-Identifier: MIT
"""Opening a file: the only module that knows all runners, and the one way to load a script."""

from __future__ import annotations

import functools
import importlib

# At once: errors are told by it, also where a program has run out of files and imports nothing any more.
import traceback  # noqa: F401
from collections.abc import Callable, Mapping
from typing import Any

from .runners.base import Runner
from .runners.options import Options
from .script import loading, parameters

_ADDRESSES = ("triton+", "triton:")
"""How the address of a server begins, or what was meant to be one."""


def open_runner(file: str, options: Mapping[str, Any], config: Mapping[str, Any]) -> Runner:
    """Load a file, or what an address of a server names, with its runner; ``options`` by name, see ``Options``."""
    chosen = Options.of(options)
    if file.startswith(_ADDRESSES):
        from .runners.models.triton import TritonRunner

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
    if loading.is_source(path):
        from .runners.script import ScriptRunner

        return ScriptRunner(path, options, dict(config), opens=open_for_child)
    from .runners.models import formats

    kind = formats.identify(path)
    options.refuse_for_saved(path, may_average=kind == formats.RECORDING)
    module, name = _RUNNERS[kind]
    made = getattr(importlib.import_module(f".runners.models.{module}", __package__), name)
    return made(path, options, dict(config))


def _for_model(module: str) -> Callable:
    return importlib.import_module(f".runners.objects.{module}", __package__).for_model


_RUNNERS = {
    "torchscript": ("torchscript", "TorchScriptRunner"),
    "exported": ("exported", "ExportedRunner"),
    "aoti": ("aoti", "AotiRunner"),
    "onnx": ("onnx", "OnnxRunner"),
    "pickle": ("pickled", "PickledRunner"),
    "recording": ("recording", "RecordingRunner"),
}
"""Modules and classes by what ``formats`` calls a file. Of all of them a program needs one or two."""
parameters.makers |= {
    parameters.OPTIMIZER: functools.partial(_for_model, "optimizers"),
    parameters.AVERAGED: functools.partial(_for_model, "averages"),
}
