# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch explore``: a network as a file that Model Explorer shows.

A network of a script becomes a program of torch.export, which Model Explorer reads by itself. TorchScript and ONNX,
which it does not read, become graphs in its JSON format.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import FtnPytorchError
from ...host import files
from ...runners.models import formats
from ...script import loading
from ...script.framework import import_torch
from .. import export
from ..example_inputs import InputSpec, add_config, config_of
from .graph import Graph


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("source", help="a saved model, or script and name in it, such as model.py:net")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SHAPE[:DTYPE]",
        help="for a script: an example input in the axis order of Python, such as 32x16, once for each input",
    )
    add_config(parser)
    parser.add_argument(
        "--output", metavar="FILE", help="default: in the working directory, the name of the file with .pt2 or .json"
    )


def run(chosen: argparse.Namespace) -> int:
    """Write the file and say how to see it."""
    file = write(chosen.source, chosen.input, config_of(chosen), chosen.output)
    print(f"{file}: show it with\n  {sys.executable} -m model_explorer {os.path.relpath(file)}")
    if importlib.util.find_spec("model_explorer") is None:
        print(f"Install that with\n  {sys.executable} -m pip install ai-edge-model-explorer")
    return 0


def write(source: str, inputs: Sequence[str], config: Mapping[str, Any], output: str | None = None) -> str:
    """Write what Model Explorer reads; the name of the file. ARGUMENT, FILE, FORMAT, HOOK, IMPORT if it cannot."""
    script, colon, _ = source.rpartition(":")
    if colon and not os.path.exists(source):
        return _write_network(source, script, inputs, config, output)
    path = loading.find(source)
    kind = formats.identify(path)
    if kind == formats.SCRIPT:
        raise FtnPytorchError("ARGUMENT", f"name the network in {source}, as in {source}:net")
    if inputs or config:
        raise FtnPytorchError("ARGUMENT", "--input and --config are for scripts: a saved model has its graph already")
    if kind == formats.EXPORTED:
        return path if output is None else _copied(path, output)
    if kind == formats.TORCHSCRIPT:
        from .torchscript import graph_of
    elif kind == formats.ONNX:
        from .onnx import graph_of
    else:
        raise FtnPytorchError(
            "FORMAT",
            f"{path} holds no graph: it is a {kind} file. Name the network in its script, or a TorchScript model, a "
            "program of torch.export or an ONNX model",
        )
    file = _target(output, path, ".json")
    _save(graph_of(path), os.path.basename(path), file)
    return file


def _write_network(
    source: str, script: str, inputs: Sequence[str], config: Mapping[str, Any], output: str | None
) -> str:
    if not inputs:
        raise FtnPytorchError("ARGUMENT", "a network of a script needs --input, such as --input 32x16, for each input")
    torch = import_torch(source)
    runner, network = export.opened(torch, source, config)  # the runner keeps the name of the script, for torch
    network.eval()
    examples = tuple(InputSpec.parse(text, "float32").example(torch) for text in inputs)
    file = _target(output, script, ".pt2")
    settings = argparse.Namespace(to="pt2", aot=False, trace=False, dynamic_batch=False)
    export.write(torch, network, examples, file, settings)
    del runner
    return file


def _target(output: str | None, source: str, extension: str) -> str:
    if output is not None and os.path.splitext(output)[1] != extension:
        raise FtnPytorchError(
            "ARGUMENT", f"--output {output}: Model Explorer knows this file by {extension} at its end"
        )
    return os.path.abspath(output or os.path.splitext(os.path.basename(source))[0] + extension)


def _copied(path: str, output: str) -> str:
    file = _target(output, path, ".pt2")
    with files.completed(file) as part:
        shutil.copyfile(path, part)
    return file


def _save(graph: Graph, label: str, file: str) -> None:
    with files.replaced(file) as stream:
        stream.write(graph.json(label).encode())
