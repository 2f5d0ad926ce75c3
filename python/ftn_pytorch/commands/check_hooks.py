# SPDX-License-Identifier: MIT
"""``check`` of a script or a saved model: its hooks, called as a Fortran program would call them."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from ..errors import FtnPytorchError
from ..script import call_text, conventions
from ..script.conventions import FORWARD, TRAIN, plain
from .c_interface import Array, Result, note_others, seconds_per_call
from .check_contents import functions_of
from .opened import NO_TARGETS, Opened, opened


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

    @contextlib.contextmanager
    def tried(self) -> Iterator[None]:
        """A body that makes the call; what it fails with is noted."""
        try:
            yield
        except FtnPytorchError as failure:
            self.failure = f"FTN_PYTORCH_ERR_{failure.status}: {failure.text}"


@dataclass
class Report:
    """Everything that was found."""

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
    """Call: 0 if all calls went well, 1 if one failed. HOOK: there is nothing to call."""
    note_others()
    with opened(chosen, outputs=chosen.output) as one:
        if not one.hooks:
            raise FtnPytorchError("HOOK", f"{one.path} defines neither {FORWARD} nor {TRAIN}")
        report = Report(one.path, one.module.backend, _functions(one), [], one.library.warnings)
        report.calls += _calls(one, False)
        if any(len(spec.shape) > 1 for spec in one.inputs):
            report.calls += _calls(one, True)
        _advise(report, one)
    if chosen.json:
        print(json.dumps({**asdict(report), "is_fine": report.is_fine}, indent=2))
    else:
        print("\n".join(_lines(report)))
    return 0 if report.is_fine else 1


def _calls(one: Opened, is_reversed: bool) -> Iterator[Outcome]:
    given, results = one.given(is_reversed), []
    if FORWARD in one.hooks:
        outcome = Outcome(FORWARD, _described(given), is_reversed)
        with outcome.tried():
            outcome.results, _, call = one.forward(given, one.results(is_reversed))
            (outcome.seconds,) = seconds_per_call([call])
        results = outcome.results
        yield outcome
    if TRAIN in one.hooks:
        aims = one.aims(results, is_reversed)
        outcome = Outcome(TRAIN, _described([*given, *aims]), is_reversed)
        if not aims:
            outcome.failure = f"not called: {NO_TARGETS}"
        else:
            with outcome.tried():
                train = one.train(given, aims)
                outcome.finished, outcome.loss = train()
                (outcome.seconds,) = seconds_per_call([train])
        yield outcome


def _described(arrays: Sequence[Array]) -> list[str]:
    return [f"{name}: {call_text.kind(value, True)}".removeprefix(": ") for name, value in arrays]


def _functions(one: Opened) -> list[str]:
    """The functions of a recording, or the script's own ones, with their parameters."""
    if one.is_recording:
        from ..saved.saved_recording import load_recording  # needs torch

        return [each.line() for each in functions_of(load_recording(one.path))]
    found = []
    for name, value in vars(one.script).items() if one.script is not None else ():
        is_own = inspect.isfunction(value) and value.__module__ == one.script.__name__ and not name.startswith("_")
        if is_own or (name in conventions.HOOKS and callable(value)):
            signature = conventions.signature_of(value)
            found.append(f"{name}{plain(signature)}" if signature else name)
    return found


def _advise(report: Report, one: Opened) -> None:
    """What the outcomes say together."""
    given = [call for call in report.calls if not call.is_reversed]
    other = [call for call in report.calls if call.is_reversed]
    for call in given:
        if call.loss is not None and not math.isfinite(call.loss):
            report.warnings.append(f"{call.function}: the loss is {call.loss} on random numbers")
    if other and not any(call.failure for call in report.calls) and not hasattr(one.script, conventions.SHAPES):
        report.warnings.append(
            "Both orders of axes are accepted: an array with its axes the wrong way round gives wrong numbers and no "
            f"error. Declare {conventions.SHAPES} in the script."
        )
    if any(call.failure for call in given) and other and not any(call.failure for call in other):
        report.warnings.append(
            "The other order of axes works. Give the shapes in the order that the script sees, which is in reverse of "
            'the Fortran order unless the program loads it with layout="same".'
        )


def _lines(report: Report) -> Iterator[str]:
    yield f"{os.path.basename(report.script)}: {report.backend}"
    yield from (f"  {function}" for function in report.functions)
    for is_reversed, title in ((False, "as given:"), (True, "with the axes the other way round:")):
        calls = [call for call in report.calls if call.is_reversed is is_reversed]
        yield from [title] * bool(calls)
        for call in calls:
            yield from _lines_of_call(call)
    yield from (f"warning: {text}" for text in report.warnings)
    yield "all calls went well" if report.is_fine else "FAILED"


def _lines_of_call(call: Outcome) -> Iterator[str]:
    yield f"  {call.function}({'; '.join(call.arguments)})"
    if call.failure:
        lines = call.failure.splitlines()
        # The other order of axes is a question, not a fault.
        yield from (f"    {line}" for line in (lines[:1] if call.is_reversed else lines))
        return
    if call.function == TRAIN:
        yield f"    loss {call.loss:.4g}, finished: {call.finished}"
    for result in call.results:
        name = f"{result.name}: " if result.name else ""
        yield f"    result {name}{call_text.kind(result, True) if result.is_array else f'a {result.dtype}'}"
    yield f"    {1e6 * (call.seconds or 0):.1f} us a call"
