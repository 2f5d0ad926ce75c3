# SPDX-License-Identifier: MIT
"""``check`` of a folder of recorded calls: they are made again without Fortran, and what comes out is compared."""

from __future__ import annotations

import functools
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import _embed
from ..diagnosis import call_recorder
from ..diagnosis.call_files import CallReader, CallWriter
from ..errors import FtnPytorchError, report
from ..script import framework
from ..values import random_states
from . import differences

# Relative difference that another number of threads can make in any type of real numbers.
_LEAST_TOLERANCE = 1e-9


def run(chosen: Namespace) -> int:
    """Run the calls: 0 if all compared ones agree, 1 if one differs. FILE if there is nothing that can be run."""
    try:
        return RecordedCalls(Path(chosen.file), chosen.script).run(chosen.call, chosen.alone, chosen.pdb)
    except (OSError, ValueError, KeyError) as failure:
        reason = f"a file in it lacks {failure}" if isinstance(failure, KeyError) else failure
        raise FtnPytorchError("FILE", f"{chosen.file} cannot be replayed: {reason}") from failure


class RecordedCalls:
    """What a folder of FTN_PYTORCH_RECORD holds; its modules are loaded when the first call needs them."""

    def __init__(self, folder: Path, script: str | None = None) -> None:
        self._folder = folder.resolve()
        if not (self._folder / "record.json").is_file():
            ranks = ", ".join(sorted(path.name for path in folder.glob("rank-*")))
            advice = f"; name one of its folders {ranks}" if ranks else ", which runs with FTN_PYTORCH_RECORD write"
            raise ValueError(f"it holds no record.json{advice}")
        self._facts = CallReader(self._folder, "record").facts
        if self._facts["format"] != call_recorder.FORMAT:
            found = self._facts["format"]
            known = call_recorder.FORMAT
            raise ValueError(f"its format is {found}, this version reads {known}: record the calls again")
        self._script = None if script is None else os.path.abspath(script)
        self._runners: dict[int, Any] = {}

    def run(self, only: int | None, alone: bool, debug: bool) -> int:
        """Run calls and print a line for each; see the function ``run``."""
        numbers = sorted(int(path.name[5:]) for path in self._folder.glob("call-*") if (path / "call.json").exists())
        if not numbers or (only is not None and only not in numbers):
            there = f"calls {numbers[0]} to {numbers[-1]}" if numbers else "no call"
            raise ValueError(f"it holds {there}")
        if os.path.isdir(self._facts["directory"]):
            os.chdir(self._facts["directory"])
        failures = 0
        for number in numbers:
            if only is not None and number > only:
                break
            self._restore(number)
            if alone and number != only:
                continue
            is_compared = only is None or number == only
            differences = list(self._call(number, debug and is_compared))
            if not is_compared:
                continue
            failures += bool(differences and not differences[0].startswith("nothing to compare"))
            print(f"call {number}: {self._title(number)}: {'; '.join(differences) or 'the same'}")
        return 1 if failures else 0

    def _restore(self, call: int) -> None:
        """Give the modules what the program had given them before a call: states that were restored, weights."""
        for folder in self._folder.glob("module-*"):
            runner = functools.partial(self._runner, int(folder.name[len("module-") :]))
            restored, assigned = f"{call_recorder.RESTORED}-{call}", f"{call_recorder.ASSIGNED}-{call}"
            if (folder / restored).exists():
                _embed.restore(runner(), str(folder / restored))
            if (folder / f"{assigned}.json").exists():
                stored = CallReader(folder, assigned)
                _embed.assign(runner(), stored.value(stored.facts["weights"]))

    def _title(self, number: int) -> str:
        facts = CallReader(self._folder / f"call-{number:04d}", "call").facts
        return f"{self._runners[facts['module']].name}.{facts['function']}"

    def _call(self, number: int, debug: bool) -> Iterator[str]:
        """Make a call; yields what differs from the recording."""
        folder = self._folder / f"call-{number:04d}"
        call = CallReader(folder, "call")
        runner = self._runner(call.facts["module"])
        name = call.facts["function"]
        args, kwargs = call.value(call.facts["arguments"])
        function = _embed.bind(runner, name, call.facts["flags"])[0]
        _embed.first_call(runner, name, tuple(args), kwargs)
        _set_random(call.value(call.facts["random"]))
        before = CallWriter()
        before.add([args, kwargs])
        result, failure = None, None
        try:
            result = self._debugged(function, args, kwargs) if debug else function(*args, **kwargs)
        except Exception as raised:
            failure = raised
        if not (folder / "result.json").exists():
            yield "nothing to compare with: the program ended in this call"
            return
        recorded = CallReader(folder, "result")
        outcome = call_recorder.outcome_of(result, failure)
        yield from _differences("result", recorded.value(recorded.facts["outcome"]), outcome)
        changes = before.changes([args, kwargs])
        yield from _differences("changed arguments", recorded.value(recorded.facts["changes"]), changes)
        if failure is not None and "exception" not in recorded.value(recorded.facts["outcome"]):
            yield report(failure)

    @staticmethod
    def _debugged(function: Any, args: list, kwargs: dict[str, Any]) -> Any:
        import pdb

        return pdb.Pdb().runcall(function, *args, **kwargs)

    def _runner(self, number: int) -> Any:
        # Modules were loaded in the order of their numbers, and loading one may draw random numbers.
        for missing in range(1, number + 1):
            if missing not in self._runners:
                self._runners[missing] = self._load(missing)
        return self._runners[number]

    def _load(self, number: int) -> Any:
        load = CallReader(self._folder / f"module-{number}", "load")
        path = self._script or self._file(number, load.facts)
        # Modules beside the script, which the recording does not hold.
        beside = os.path.dirname(load.facts["file"])
        if beside not in sys.path:
            sys.path.append(beside)
        _set_random(load.value(load.facts["random"]))
        if load.facts["torch_seed"] is not None:
            import torch

            framework.note_bringing_torch(path)
            torch.manual_seed(load.facts["torch_seed"])
        return _embed.load(0, path, load.value(load.facts["options"]), load.value(load.facts["config"]))

    def _file(self, number: int, facts: dict[str, Any]) -> str:
        """The file itself while it is what was recorded, so that breakpoints fit; else its copy."""
        copy = self._folder / f"module-{number}" / facts["copy"]
        original = Path(facts["file"])
        if original.is_file() and original.read_bytes() == copy.read_bytes():
            return str(original)
        state = "has changed since" if original.is_file() else "is not there"
        print(f"{original} {state}: the copy of the recording runs. --script runs another file.", file=sys.stderr)
        return str(copy)


def _differences(what: str, recorded: Any, found: Any) -> Iterator[str]:
    """Where two values differ by more than another order of summation explains."""
    if isinstance(recorded, (list, tuple)) and isinstance(found, (list, tuple)):
        if len(recorded) != len(found):
            yield f"{what} has {len(found)} parts, recorded {len(recorded)}"
        for number, (one, other) in enumerate(zip(recorded, found), 1):
            yield from _differences(f"{what} {number}", one, other)
    elif isinstance(recorded, dict) and isinstance(found, dict):
        for name in sorted({*recorded, *found}):
            if name not in recorded or name not in found:
                yield f"{what}: {name} is {'new' if name in found else 'missing'}"
            else:
                yield from _differences(f"{what} {name}", recorded[name], found[name])
    elif hasattr(recorded, "shape") and hasattr(found, "shape"):
        yield from _array_differences(what, recorded, found)
    elif recorded != found and not (recorded != recorded and found != found):
        if isinstance(recorded, float) and isinstance(found, float) and abs(recorded - found) <= 1e-5 * abs(recorded):
            return
        yield f"{what} is {found!r}, recorded {recorded!r}"


def _set_random(states: dict[str, Any]) -> None:
    if "torch" in states:
        # As in the recorded program; restore leaves out what nobody has imported.
        import torch  # noqa: F401
    random_states.restore(states)


def _array_differences(what: str, recorded: Any, found: Any) -> Iterator[str]:
    if str(recorded.dtype) != str(found.dtype) or tuple(recorded.shape) != tuple(found.shape):
        yield (
            f"{what} is {found.dtype} of shape {tuple(found.shape)}, "
            f"recorded {recorded.dtype} of shape {tuple(recorded.shape)}"
        )
        return
    limit = differences.tolerance(recorded)
    found_apart = differences.between(found, recorded, least=0.0)
    # A step of training adds up more sums than a prediction does.
    if found_apart.relative > (max(limit, _LEAST_TOLERANCE) if limit else 0.0):
        yield f"{what} differs from the recording by up to {found_apart.absolute:.3g}"
