# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch export``: a network of a script as a file that Fortran loads, checked against eager torch."""

from __future__ import annotations

import argparse
import contextlib
import copy
import inspect
import io
import logging
import math
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from ..errors import FtnPytorchError, message, missing_package, summary
from ..runners.base import Runner
from ..script import loading
from ..script.framework import import_torch
from ..system import files, installation, private_names
from ..values import dtype_name, dtypes
from . import export_check, tracing
from .example_inputs import InputSpec, add_config
from .opened import opened_in_python

_WHOLE = ("recording", "compiled")
"""Formats that hold a script with all that it trains."""
_REALS = tuple(name for name in dtypes.OF_CODE.values() if "float" in name)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "source",
        help="script and name in it, such as model.py:build_model: a module, or a function without arguments that "
        "makes one. With --to recording and --to compiled the script alone, whose hooks are recorded",
    )
    parser.add_argument(
        "--input",
        action="append",
        required=True,
        metavar="SHAPE[:DTYPE]",
        help="an example input in the axis order of Python, such as 32x16 or 32:int64; once for each input",
    )
    parser.add_argument(
        "--to",
        required=True,
        choices=("pt", "pt2", "onnx", *_WHOLE),
        help="TorchScript, torch.export, ONNX; or a saved recording, which trains as well, without code or compiled",
    )
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="SHAPE[:DTYPE]",
        help="with --to recording and --to compiled: a target of ftn_pytorch_train; once for each",
    )
    parser.add_argument(
        "--batch",
        action="append",
        type=int,
        default=[],
        metavar="ROWS",
        help="with --to recording and --to compiled: a batch size that the file is for; once for each. Default: any",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="default: the stem of the script, and the format as extension"
    )
    parser.add_argument(
        "--dtype",
        help="type of inputs that name none, and of the parameters, which are converted; default: nothing is "
        "converted, and such inputs have the type of the parameters. With --to recording and --to compiled: of "
        "inputs alone, default float32",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="PATH",
        help="restore the script from this file, or from the newest checkpoint of this folder, before its network is "
        "written",
    )
    add_config(parser)
    parser.add_argument("--dynamic-batch", action="store_true", help="the first axis of all inputs may have any size")
    parser.add_argument(
        "--aot",
        action="store_true",
        help="with --to pt2: compile a package of AOTInductor for this machine and this torch",
    )
    parser.add_argument("--trace", action="store_true", help="with --to pt: trace instead of torch.jit.script")
    parser.add_argument(
        "--trainable", action="store_true", help="with --to pt: parameters that train of torch_module may change"
    )
    parser.add_argument(
        "--tolerance", type=float, help="largest difference to eager torch, relative to the largest value of a result"
    )


def run(chosen: argparse.Namespace) -> int:
    """Export and check: 0, or 1 where the file gives other results."""
    if chosen.aot and chosen.to != "pt2":
        raise FtnPytorchError("ARGUMENT", "--aot makes a .pt2 package: add --to pt2")
    if chosen.trace and chosen.to != "pt":
        raise FtnPytorchError("ARGUMENT", "--trace is a way to TorchScript: add --to pt")
    if chosen.trainable and chosen.to != "pt":
        raise FtnPytorchError("ARGUMENT", "--trainable: of saved models only TorchScript can be trained, add --to pt")
    if chosen.dynamic_batch and all(text.startswith("scalar") for text in chosen.input):
        raise FtnPytorchError("ARGUMENT", "--dynamic-batch: no --input has an axis, whose size could be open")
    if chosen.dtype not in (None, *_REALS):
        raise FtnPytorchError("ARGUMENT", f"--dtype {chosen.dtype}: there are {', '.join(_REALS)}")
    if chosen.tolerance is not None and not 0 <= chosen.tolerance < math.inf:
        raise FtnPytorchError("ARGUMENT", f"--tolerance {chosen.tolerance}: give a number from 0 on")
    if chosen.to not in _WHOLE and (chosen.target or chosen.batch):
        raise FtnPytorchError(
            "ARGUMENT", "--target and --batch are for recordings: add --to recording or --to compiled"
        )
    if any(rows < 1 for rows in chosen.batch):
        raise FtnPytorchError("ARGUMENT", "--batch: a batch has at least one row")
    output = _output(chosen)
    if chosen.to in _WHOLE:
        from . import export_recording  # which needs torch, as other commands do not

        return export_recording.run(chosen, output)
    torch = import_torch(chosen.source)
    # The runner keeps the name of the script, by which torch finds its sources.
    runner, module = _opened(torch, chosen)
    module.eval()
    own = _own_type(module)
    specs = [InputSpec.parse(text, chosen.dtype or own) for text in chosen.input]
    references = [export_check.Reference(module, "")]
    if chosen.dtype is not None:
        references = _converted(torch, module, own, chosen.dtype)
    if not chosen.trainable:
        for parameter in module.parameters():
            parameter.requires_grad_(False)
    torch.manual_seed(0)
    examples = [spec.example(torch) for spec in specs]
    with export_check.tried("the module", examples):
        for each in references:
            each(examples)
    comparison = export_check.Check(torch, references, specs, chosen.tolerance)

    def is_right(part: str) -> bool:
        how, hidden = write(torch, module, tuple(examples), part, chosen)
        print(f"{output}: {how}")
        if hidden:
            print(f"check: FAILED: for other inputs the trace may give other results: {hidden}", file=sys.stderr)
        return comparison.is_right(part, chosen.dynamic_batch, chosen.to == "pt") and not hidden

    return export_check.kept_if(output, is_right)


def _own_type(module: Any) -> str:
    """The type of its parameters; that of torch, where it has no real ones."""
    return next((dtype_name(each) for each in module.parameters() if each.is_floating_point()), "float32")


def _converted(torch: Any, module: Any, own: str, dtype: str) -> list[export_check.Reference]:
    """Convert the module; it, and what it was before, which takes its own type. FORMAT if that cannot be kept."""
    try:
        before = copy.deepcopy(module)
    except Exception as failure:
        raise FtnPytorchError(
            "FORMAT",
            f"the module cannot be copied, so that the file could not be compared with what it was before --dtype "
            f"{dtype} converts it: {message(failure)}. Convert it in the script, and leave out --dtype",
        ) from failure
    module.to(getattr(torch, dtype))
    script = export_check.Reference(before, ", before --dtype", getattr(torch, dtype), getattr(torch, own))
    return [export_check.Reference(module, ""), script]


def _output(chosen: argparse.Namespace) -> str:
    """The file to write, known before anything that takes time. ARGUMENT for a name that programs take for another."""
    ending = {"recording": "ftr", "compiled": "pt2"}.get(chosen.to, chosen.to)
    output = files.to_write(chosen.output, chosen.source.rpartition(":")[0] or chosen.source, ending)
    if chosen.to == "compiled" and not output.endswith(".pt2"):
        raise FtnPytorchError("ARGUMENT", f"{output}: a file with code has a name that ends in .pt2")
    return output


def _opened(torch: Any, chosen: argparse.Namespace) -> tuple[Runner, Any]:
    """A script that is loaded and set up, and the module that ``script.py:name`` means in it.

    FILE, HOOK, or what the script raises. With ``--checkpoint`` it must have the module under that name.
    """
    source = chosen.source
    script, colon, name = source.rpartition(":")
    if not colon or not name:
        raise FtnPytorchError("ARGUMENT", f"{source!r} names no network: write script.py:name")
    runner = opened_in_python(script, {}, chosen)
    path, found = runner.path, runner.value(name)
    if found is None:
        there = ", ".join([*runner.networks(), *runner.functions()])
        raise FtnPytorchError("HOOK", f"{path} has no {name!r}; it has {there or 'nothing that can be called'}")
    if isinstance(found, torch.nn.Module):
        return runner, found
    if chosen.checkpoint is not None:
        raise FtnPytorchError(
            "HOOK",
            f"{path}: {name!r} is no network but a {type(found).__name__}, and what it made would be a new one: with "
            "--checkpoint, name the network that the script keeps",
        )
    if not callable(found):
        raise FtnPytorchError("HOOK", f"{source} is of type {type(found).__name__}: name a module or a function")
    made = loading.run(path, found)
    if not isinstance(made, torch.nn.Module):
        raise FtnPytorchError("HOOK", f"{source} gave a {type(made).__name__}, not a torch.nn.Module")
    return runner, made


def write(torch: Any, module: Any, examples: tuple, path: str, chosen: argparse.Namespace) -> tuple[str, str]:
    """Write the file, and say in words what it is, and what may be wrong with it: empty, but for some traces.

    IMPORT for missing packages, FORMAT where torch cannot export.
    """
    try:
        with _quiet():
            return _write(torch, module, examples, path, chosen)
    except FtnPytorchError:
        raise
    except Exception as failure:
        raise FtnPytorchError(
            "FORMAT", f"torch cannot export this module to {chosen.to}: {message(failure)}"
        ) from failure


def _write(torch: Any, module: Any, examples: tuple, path: str, chosen: argparse.Namespace) -> tuple[str, str]:
    if chosen.to == "pt":
        return _write_torchscript(torch, module, examples, path, chosen.trace)
    axes = _axes(torch, module, examples) if chosen.dynamic_batch else None
    if chosen.to == "onnx":
        require("onnx", "onnxscript")
        torch.onnx.export(
            module, examples, path, dynamo=True, dynamic_shapes=axes, external_data=False, verbose=False, optimize=True
        )
        return "an ONNX model", ""
    with private_names.any_batch_size():
        program = torch.export.export(module, examples, dynamic_shapes=axes)
        if not chosen.aot:
            torch.export.save(program, path)
            return "a program of torch.export", ""
        private_names.aoti_compile(program, path, installation.settings_of_package(torch))
    return f"a package of AOTInductor for this machine and torch {torch.__version__}", ""


def _write_torchscript(torch: Any, module: Any, examples: tuple, path: str, trace: bool) -> tuple[str, str]:
    made, how, hidden = None, "a traced TorchScript model", ""
    if not trace:
        try:
            made, how = torch.jit.script(module), "a scripted TorchScript model"
        except Exception as failure:
            how += f" (torch.jit.script cannot do it: {summary(failure)})"
    if made is None:
        made, hidden = tracing.traced(torch, module, examples)
    torch.jit.save(made, path)
    return how, hidden


def _axes(torch: Any, module: Any, examples: tuple) -> Any:
    """The first axis of each input as one dynamic size, by the names of the parameters of ``forward``."""
    batch = torch.export.Dim("batch")
    axes = [{0: batch} if example.dim() else None for example in examples]
    parameters = list(inspect.signature(module.forward).parameters.values())
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return (tuple(axes),)
    return {parameter.name: axis for parameter, axis in zip(parameters, axes)}


def require(*packages: str) -> None:
    import importlib.util

    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise missing_package("this format", "not found", *missing)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Exporters tell of their own steps and print the graph that they could not make, TorchScript is deprecated."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
