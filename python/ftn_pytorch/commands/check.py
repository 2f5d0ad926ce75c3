# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch check``: the functions of a script, called as a Fortran program would call them."""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import FtnPytorchError
from ..runners.models import formats
from ..script import call_text, conventions, loading
from ..script.conventions import FORWARD, TRAIN
from ..system import process
from . import check_recording
from .c_interface import Array, Library, Module, Result, seconds_per_call
from .describe import functions_of
from .example_inputs import InputSpec, add_config, add_dtype, add_inputs, add_target, config_of, named_specs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("script", help="a Python script, or a saved model")
    add_inputs(parser, default="of a saved recording, its contents are listed and nothing is called")
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        metavar="[NAME=]SHAPE[:DTYPE]",
        help="an array that the program passes for a result of ftn_pytorch_forward; default: any result is taken",
    )
    add_target(parser)
    add_config(parser)
    add_dtype(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


NO_TARGETS = "there are no results to take as targets; name some with --target"


@dataclass
class Arrays:
    """What a program would pass, in the axis order of Python."""

    inputs: Sequence[InputSpec]
    outputs: Sequence[InputSpec]
    targets: Sequence[InputSpec]

    @classmethod
    def of(cls, chosen: argparse.Namespace) -> Arrays:
        """From the options of a command."""
        return cls(*(named_specs(getattr(chosen, name), f"--{name}") for name in ("input", "output", "target")))


@dataclass
class Outcome:
    """What came of a call."""

    function: str
    arguments: list[str]
    is_reversed: bool
    """Whether the arrays had their axes in the other order than the one that was given."""
    failure: str = ""
    """Status and text, empty if it went well."""
    results: list[Result] = field(default_factory=list)
    loss: float | None = None
    finished: bool | None = None
    seconds: float | None = None
    """Of one call, made again and again."""


@dataclass
class Report:
    """Everything that the command found."""

    script: str
    backend: str
    functions: list[str]
    calls: list[Outcome]
    warnings: list[str]

    @property
    def is_fine(self) -> bool:
        """Whether all calls with the axes as given went well."""
        return not any(call.failure for call in self.calls if not call.is_reversed)


def run(chosen: argparse.Namespace) -> int:
    """Check: 0 if all calls went well, 1 if one failed."""
    if not chosen.input:
        if check_recording.is_meant(chosen.script):
            return check_recording.run(chosen.script, chosen.json)
        raise FtnPytorchError("ARGUMENT", f"{chosen.script} is called with arrays: describe them with --input")
    arrays = Arrays.of(chosen)
    if note := process.busy():
        print(f"note: {note}", file=sys.stderr)
    with contextlib.redirect_stdout(sys.stderr):  # what the script prints
        report = examine(chosen.script, arrays, config_of(chosen), chosen.dtype)
    if chosen.json:
        print(json.dumps({**asdict(report), "is_fine": report.is_fine}, indent=2))
    else:
        _show(report)
    return 0 if report.is_fine else 1


def examine(file: str, arrays: Arrays, config: Mapping[str, Any], dtype: str) -> Report:
    """Load a file and call its hooks. FILE, SYNTAX, IMPORT, SCRIPT, ...: it cannot be loaded; HOOK: it has none."""
    path = loading.find(file)
    library = Library()
    is_recording = formats.identify(path) == formats.RECORDING
    # A program that takes torch_module for a saved recording has no Python; its times are those of interest.
    module = library.load(path, is_recording, {"dtype": dtype}, config)
    script = module_of(path)
    # Other saved models train when the program has given them an optimizer.
    is_trained = module.backend == "script" or is_recording
    names = [name for name in ((FORWARD, TRAIN) if is_trained else (FORWARD,)) if module.has(name)]
    if not names:
        raise FtnPytorchError("HOOK", f"{path} defines neither {FORWARD} nor {TRAIN}")
    functions = _recorded_functions(path) if is_recording else _functions(script)
    report = Report(path, module.backend, functions, [], library.warnings)
    for is_reversed in (False, True):
        if is_reversed and all(len(spec.shape) < 2 for spec in arrays.inputs):
            break
        report.calls += _calls(module, script, names, arrays, is_reversed)
    _advise(report, script)
    return report


def _calls(module: Module, script: Any, names: Sequence[str], arrays: Arrays, is_reversed: bool) -> list[Outcome]:
    given = [(spec.name, spec.array(is_reversed)) for spec in arrays.inputs]
    aims = [(spec.name, spec.array(is_reversed)) for spec in arrays.targets]
    made: list[Outcome] = []
    if FORWARD in names:
        outputs = [(spec.name, spec.array(is_reversed)) for spec in arrays.outputs]
        made.append(_forward(module, script, given, outputs, is_reversed))
        if not aims:
            found = [each for each in made[0].results if each.is_array]
            aims = [("", InputSpec(each.shape, each.dtype).array()) for each in found]
    if TRAIN in names:
        made.append(_train(module, script, given, aims, is_reversed))
    return made


def _forward(module: Module, script: Any, given: list[Array], outputs: list[Array], is_reversed: bool) -> Outcome:
    outcome = Outcome(FORWARD, _described(given), is_reversed)
    try:
        _check_names(script, FORWARD, given)
        if outputs:
            call: Callable[[], Any] = module.forward_call(given, outputs)
            call()
            outcome.results = [Result(name, value.shape, value.dtype.name) for name, value in outputs]
        else:
            outcome.results = found = module.forward(given)
            call = functools.partial(module.forward, given)
            if all(each.is_array for each in found):
                call = module.forward_call(given, [(each.name, each.zeros()) for each in found])
        (outcome.seconds,) = seconds_per_call([call])
    except FtnPytorchError as failure:
        outcome.failure = _words(failure)
    return outcome


def _train(module: Module, script: Any, given: list[Array], aims: list[Array], is_reversed: bool) -> Outcome:
    outcome = Outcome(TRAIN, _described([*given, *aims]), is_reversed)
    if not aims:
        outcome.failure = f"not called: {NO_TARGETS}"
        return outcome
    try:
        call = module.train_call(given, named_targets(script, given, aims))
        outcome.finished, outcome.loss = call()
        (outcome.seconds,) = seconds_per_call([call])
    except FtnPytorchError as failure:
        outcome.failure = _words(failure)
    return outcome


def named_targets(script: Any, given: Sequence[Array], aims: list[Array]) -> list[Array]:
    """Targets by name where the inputs have names: one without goes to a parameter that the inputs leave."""
    signature = _check_names(script, TRAIN, [*given, *aims])
    if signature is None or not any(name for name, _ in given):
        return aims
    taken = {name for name, _ in [*given, *aims]}
    left = iter([name for name in signature.parameters if name not in taken])
    return [(name or next(left, ""), value) for name, value in aims]


def _check_names(script: Any, function: str, arguments: Sequence[Array]) -> inspect.Signature | None:
    """The signature of a function of the script; SIGNATURE if it lacks a parameter that is named."""
    signature = None if script is None else conventions.signature_of(getattr(script, function))
    takes_all = signature is None or any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    for name, _ in arguments:
        if name and signature is not None and not takes_all and name not in signature.parameters:
            text = f"{function}{_plain(signature)} has no parameter {name!r}"
            raise FtnPytorchError("SIGNATURE", f"{text}: leave the names out to pass arguments by position")
    return signature


def _described(arrays: Sequence[Array]) -> list[str]:
    return [f"{name}: {call_text.kind(value, True)}".removeprefix(": ") for name, value in arrays]


def _words(failure: FtnPytorchError) -> str:
    return f"FTN_PYTORCH_ERR_{failure.status}: {failure.text}"


def module_of(path: str) -> Any:
    """The script as Python has imported it, None for a saved model."""
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        if spec is not None and spec.origin == path:
            return module
    return None


def _functions(script: Any) -> list[str]:
    """The script's own functions with their parameters."""
    found = []
    for name, value in vars(script).items() if script is not None else ():
        is_own = inspect.isfunction(value) and value.__module__ == script.__name__ and not name.startswith("_")
        if is_own or (name in conventions.HOOKS and callable(value)):
            signature = conventions.signature_of(value)
            found.append(f"{name}{_plain(signature)}" if signature else name)
    return found


def _recorded_functions(path: str) -> list[str]:
    from ..saved.saved_recording import load_recording  # needs torch

    return [each.line() for each in functions_of(load_recording(path))]


def _plain(signature: inspect.Signature) -> str:
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def _advise(report: Report, script: Any) -> None:
    """What the outcomes say together."""
    given = [call for call in report.calls if not call.is_reversed]
    other = [call for call in report.calls if call.is_reversed]
    for call in given:
        if call.loss is not None and not math.isfinite(call.loss):
            report.warnings.append(f"{call.function}: the loss is {call.loss} on random numbers")
    if other and not any(call.failure for call in report.calls) and conventions.SHAPES not in vars(script or object):
        report.warnings.append(
            "Both orders of axes are accepted: an array with its axes the wrong way round gives wrong numbers and no "
            f"error. Declare {conventions.SHAPES} in the script."
        )
    if any(call.failure for call in given) and other and not any(call.failure for call in other):
        report.warnings.append(
            "The other order of axes works. Give the shapes in the order that the script sees, which is in reverse of "
            'the Fortran order unless the program loads it with layout="same".'
        )


def _show(report: Report) -> None:
    print(f"{os.path.basename(report.script)}: {report.backend}")
    for function in report.functions:
        print(f"  {function}")
    for is_reversed, title in ((False, "as given"), (True, "with the axes the other way round")):
        calls = [call for call in report.calls if call.is_reversed is is_reversed]
        if calls:
            print(f"{title}:")
        for call in calls:
            _show_call(call)
    for text in report.warnings:
        print(f"warning: {text}")
    print("all calls went well" if report.is_fine else "FAILED")


def _show_call(call: Outcome) -> None:
    print(f"  {call.function}({'; '.join(call.arguments)})")
    if call.failure:
        lines = call.failure.splitlines()
        # The other order of axes is a question, not a fault.
        print("\n".join(f"    {line}" for line in (lines[:1] if call.is_reversed else lines)))
        return
    if call.function == TRAIN:
        print(f"    loss {call.loss:.4g}, finished: {call.finished}")
    for result in call.results:
        name = f"{result.name}: " if result.name else ""
        print(f"    result {name}{call_text.kind(result, True) if result.is_array else f'a {result.dtype}'}")
    print(f"    {1e6 * (call.seconds or 0):.1f} us a call")
