# SPDX-License-Identifier: MIT
"""``export --to recording`` and ``--to compiled``: what a program runs and trains without Python.

The hooks are called with example inputs until they are recorded, for three batch sizes. Afterwards the state of the
script is what it was before, and the file is compared with the script: bit for bit, or code within a tolerance.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..compiling import compilation
from ..errors import FtnPytorchError
from ..recording import compiled_steps
from ..recording.comparison import is_same
from ..recording.operations import address_of
from ..recording.returned import parts
from ..recording.tape import Tape
from ..saved import any_batch, writing
from ..saved.compiled import Code
from ..saved.portable import GRADIENT, Plain, Unsavable
from ..saved.saved_recording import load_recording
from ..script.compiling import require_cxx
from ..script.conventions import FORWARD, TRAIN
from . import export_check
from .example_inputs import InputSpec
from .opened import opened_in_python

_OF_CODE = 1e-3
"""Of weights after steps. Where a gradient is near zero, Adam makes much of its last digits."""
_BIT_FOR_BIT = "equal to the script bit for bit"
_MULTIPLIES = ("aten.mul_.", "aten._foreach_mul_.")
_CALLS = 12
"""Two as they are, one recorded, three checked, and as many again where a step of an optimizer goes another way."""
_PASSES = 4
_MOST_ROWS, _MOST_NUMBERS = 1 << 10, 1 << 17
"""Of batches that are tried: a network may compute something for each pair of rows."""


def run(chosen: argparse.Namespace, output: str) -> int:
    """Write the file and check it: 0, or 1 where it gives other numbers."""
    if chosen.to == "compiled":
        compilation.folder()  # torch looks for a compiler there, too
        require_cxx("--to compiled needs a C++ compiler", "or export --to recording, which needs none")
    source, trained = _source(chosen.source)
    dtype = chosen.dtype or "float32"
    inputs = [InputSpec.parse(text, dtype) for text in chosen.input]
    targets = [InputSpec.parse(text, dtype, "--target") for text in chosen.target]
    runner = opened_in_python(source, {"record": True}, chosen)
    hooks = {FORWARD: inputs, **({TRAIN: [*inputs, *targets]} if targets else {})}
    if trained != TRAIN:
        _require_recorded(runner, source, trained, targets)
    names = {FORWARD: FORWARD, TRAIN: trained}
    hooks = {name: specs for name, specs in hooks.items() if runner.find(names[name]) is not None}
    if targets and TRAIN not in hooks:
        raise FtnPytorchError("HOOK", f"{source} has no {TRAIN}, which would take what --target names: leave it out")
    if not hooks:
        raise FtnPytorchError("HOOK", f"{source} has no {FORWARD}, and no {TRAIN} with --target")
    if TRAIN not in hooks and runner.find(TRAIN) is not None:
        print(f"{TRAIN} is not in the file, which predicts alone: give its targets with --target", file=sys.stderr)
    return export_check.kept_if(output, _Export(runner, hooks, names, output, chosen).run)


def _source(text: str) -> tuple[str, str]:
    """The script, and its function that trains: "closure.py", or "closure.py:refine"."""
    source, colon, name = text.rpartition(":")
    if not colon:
        source, name = text, TRAIN
    if not source.endswith(".py") or not name.isidentifier():
        raise FtnPytorchError(
            "ARGUMENT",
            f"{text}: --to recording and --to compiled take the script itself, such as closure.py, or "
            f"closure.py:refine, where refine is a recorded function in place of {TRAIN}",
        )
    return source, name


def _require_recorded(runner: Any, source: str, name: str, targets: list[InputSpec]) -> None:
    """HOOK for a name that is no recorded function, ARGUMENT where it would not be trained."""
    if not hasattr(runner.require(name), "recording"):
        raise FtnPytorchError("HOOK", f"{name} of {source} is not recorded: decorate it with ftn_pytorch.recorded")
    if not targets:
        raise FtnPytorchError("ARGUMENT", f"{source}:{name}: say with --target what {name} takes behind the inputs")


class _Export:
    def __init__(
        self,
        runner: Any,
        hooks: dict[str, list[InputSpec]],
        names: dict[str, str],
        output: str,
        chosen: argparse.Namespace,
    ) -> None:
        """names: of the functions of the script that become the hooks of the file."""
        import torch

        self._names = names
        self._torch, self._runner, self._hooks, self._output = torch, runner, hooks, output
        self._sizes: list[int] = chosen.batch
        first = next((spec.shape[0] for specs in hooks.values() for spec in specs if spec.shape), 1)
        self._any = [first, first + 1, 2 * first + 3]
        self._is_compiled = chosen.to == "compiled"
        self._tolerance = chosen.tolerance or _OF_CODE if self._is_compiled else 0.0
        self._numbers = list(export_check.NUMBERS)
        self._before = _State(runner.found_state(), output)

    def run(self, part: str) -> bool:
        """Write the file under this name; whether it gives the numbers of the script."""
        functions = {name: bound for name in self._hooks for bound in [self._runner.bind(self._names[name], 0)[0]]}
        taken: dict[tuple[str, int], list[Tape]] = {}
        for size in self._sizes or self._any:
            for name, function in functions.items():
                taken[name, size] = self._recorded(name, function, size)
        self._before.put_back()
        state, script = self._runner.found_state(), os.path.basename(self._runner.path)
        writer = writing.Writer(state, part, script, [each for tapes in taken.values() for each in tapes])
        plain = {key: writer.plain(key[0], tapes) for key, tapes in taken.items()}
        found = {name: self._merged(name, plain) for name in functions}
        writer.write(found, compares=False)
        for name in functions:
            self._require_first_step(name)
        if self._settle_sizes(part, found, plain):
            self._before.put_back()
            writer.write(found, compares=False)
        if self._is_compiled:
            self._before.put_back()
            writer.write(found, compares=False, code=self._compiled(found))
            # large ones saturate a network: Adam makes whole steps of what rounding leaves of such gradients
            self._numbers = self._numbers[:2]
        for name, tapes in found.items():
            count = " and ".join("code" if "code" in tape else f"{len(tape['operations'])} operators" for tape in tapes)
            print(f"{self._output}: {name}, {count}, {self._told(tapes)}")
        return self._check(part, found)

    def _compiled(self, found: dict[str, list[Plain]]) -> dict[str, bytes]:
        """The code of all recordings, or of those that can be compiled. HOOK if none can, PYTHON if one fails."""
        code = Code()
        for name, tapes in found.items():
            for tape in tapes:
                try:
                    code.add(tape, max(2, self._any[0]))
                except Unsavable as reason:
                    print(f"{name} stays recorded and is not compiled: {reason}", file=sys.stderr)
        if not code.records:
            raise FtnPytorchError("HOOK", f"{self._output} is not written: no function can be compiled")
        return code.records

    def _recorded(self, name: str, function: Callable, size: int) -> list[Tape]:
        """All recordings that calls from the present state lead to, the first one first: calls that follow one another,
        and in turn with these the first one again and again, which may go another way."""
        found: list[Tape] = []
        is_first = size in (*self._sizes, self._any[0])
        advice = "" if is_first else f" (for one batch size alone: --batch {self._any[0]})"
        function.recording.reset()  # type: ignore[attr-defined]
        for number in range(_PASSES):
            before = len(found)
            self._before.put_back()
            with self._before.seeded():
                for _ in range(_CALLS):
                    if number % 2:
                        self._before.put_back()
                    with export_check.tried(self._names[name], given := self._examples(name, size), advice):
                        function(*given)
                    ready = function.recording.tapes()  # type: ignore[attr-defined]
                    found += [tape for tape in ready if not any(tape is each for each in found)]
            for tape in found[before:]:
                self._before.learn_products(tape)
            if number and len(found) == before:
                break
        if not found:
            writing.tapes_of(name, function)
        return [tape for tape in found if _size_of(tape) in (size, None)]

    def _require_first_step(self, name: str) -> None:
        """HOOK where the first step of the script is another one than from the state with which the file begins."""
        found = []
        for is_new in (True, False):
            self._before.put_back(is_new)
            with self._before.seeded():
                given = self._examples(name, (self._sizes or self._any)[0])
            self._runner.find(self._names[name])(*given)
            found.append(self._before.copied())
        # what the first step has made is told before what follows from it
        for key in sorted(found[0].keys() & found[1].keys(), key=lambda key: (self._before.had(key), key)):
            if not is_same(found[0][key], found[1][key], self._tolerance):
                raise FtnPytorchError(
                    "HOOK",
                    f"{name} cannot be saved as it begins: its first step computes {key.replace('/', '.')} otherwise "
                    "than the later ones, which the file has, as with dampening. Save it from a run that has trained",
                )

    def _examples(self, name: str, size: int) -> list[Any]:
        return [spec.example(self._torch, size) if spec.shape else _number(spec) for spec in self._hooks[name]]

    def _merged(self, name: str, plain: dict[tuple[str, int], list[Plain]]) -> list[Plain]:
        if self._sizes:
            return [tape for size in self._sizes for tape in plain[name, size]]
        one, two, three = (plain[name, size] for size in self._any)
        try:
            if len(one) != len(two) or len(one) != len(three):
                raise Unsavable("there are more recordings for some sizes")
            return [
                any_batch.merged(*(any_batch.Sized(size, tape) for size, tape in zip(self._any, tapes)))
                for tapes in zip(one, two, three)
            ]
        except Unsavable as reason:
            self._tell_of_one_size(name, str(reason))
            return one

    def _tell_of_one_size(self, name: str, reason: str) -> None:
        print(
            f"{name}: for a batch of {self._any[0]} only, because {reason}; give --batch once for each size that the "
            "program uses",
            file=sys.stderr,
        )

    def _told(self, tapes: list[Plain]) -> str:
        if all(tape["batch"] for tape in tapes):
            return "any batch size" if all(tape["least"] == 1 for tape in tapes) else "any batch size from 2 on"
        return f"batches of {', '.join(map(str, self._sizes or self._any[:1]))}"

    def _settle_sizes(
        self, part: str, found: dict[str, list[Plain]], plain: dict[tuple[str, int], list[Plain]]
    ) -> bool:
        """Whether a recording for any batch size is one for fewer, since script or torch decide by the size.

        A batch of one row may be refused, such as by batch normalisation, or be another case.
        """
        changed = False
        for name, tapes in found.items():
            if not all(tape["batch"] for tape in tapes):
                continue
            try:
                least = 1 if self._is_equal(part, name, 1) else 2
            except Exception:  # of the script, which then takes no such batch
                least = 2
            changed |= least > 1
            for tape in tapes:
                tape["least"] = least
            other = self._size_of_another_case(part, name)
            if other is not None:
                changed, found[name] = True, plain[name, self._any[0]]
                self._tell_of_one_size(name, f"a batch of {other} computes something else, or fails")
        return changed

    def _size_of_another_case(self, part: str, name: str) -> int | None:
        """The first one at which script and file go apart, which make steps of all sizes from the same state on.

        Script and torch may decide between them: powers of two, and one more, as long as the arguments are small.
        """
        row = sum(math.prod(spec.shape[1:]) for spec in self._hooks[name] if spec.shape)
        most = max(self._any[0], min(_MOST_ROWS, _MOST_NUMBERS // max(row, 1)))
        self._before.put_back(is_new=True)
        script, saved = self._runner.find(self._names[name]), load_recording(part)
        for size in [(1 << k) + more for k in range(1, most.bit_length()) for more in (0, 1)]:
            found = []
            for step in (script, functools.partial(saved.call, name)):
                with self._before.seeded():
                    given = self._examples(name, size)
                try:
                    found.append([*parts(step(*given)), self._torch.get_rng_state()])
                except Exception:  # of either, which then takes no such batch
                    return size
            if not all(is_same(one, two, 0) for one, two in zip(*found)):
                return size
        return None

    def _check(self, part: str, found: dict[str, list[Plain]]) -> bool:
        """Some steps of the file and of the script from the same state, with the same numbers."""
        all_fine = True
        for name in self._hooks:
            is_any = all(tape["batch"] for tape in found[name])
            sizes = self._sizes or ([self._any[0], self._any[2]] if is_any else self._any[:1])
            for size in sizes:
                fine = self._is_equal(part, name, size)
                all_fine &= fine
                text = f"check {name} with a batch of {size}: {len(self._numbers)} steps, "
                equal = f"equal to the script within {self._tolerance:g}" if self._is_compiled else _BIT_FOR_BIT
                verdict = equal if fine else "FAILED, the script gives other numbers"
                print(text + verdict, file=sys.stdout if fine else sys.stderr)
                if fine and size == sizes[0] and self._depends_on_gradients(part, name, size):
                    print(
                        f"{name}: where gradients are off (scope%no_grad, the module ftorch), the script gives other "
                        "numbers than this file, which computes as with gradients; TorchScript follows the program",
                        file=sys.stderr,
                    )
        return all_fine

    def _depends_on_gradients(self, part: str, name: str, size: int) -> bool:
        """Whether the script gives other numbers than the file where gradients are off. What trains needs them."""
        try:
            with self._torch.no_grad():
                return not self._is_equal(part, name, size)
        except Exception:  # of the script, which then cannot be called so
            return False

    def _is_equal(self, part: str, name: str, size: int) -> bool:
        self._before.put_back()
        with self._before.seeded():
            examples = [
                [export_check.like(numbers, each) for each in self._examples(name, size)] for numbers in self._numbers
            ]
        self._before.put_back(is_new=True)
        wanted = [self._runner.find(self._names[name])(*each) for each in examples]
        states, random = self._before.copied(), self._torch.get_rng_state()
        there = self._before.present()
        self._before.put_back()
        saved = load_recording(part)
        found = [saved.call(name, *each) for each in examples]
        pairs = [pair for one, two in zip(wanted, found) for pair in zip(parts(one), parts(two))]
        pairs.append((random, self._torch.get_rng_state()))
        pairs += [(states[key], saved.arrays[key]) for key in states if key in saved.arrays]
        if self._is_compiled:  # what are views of one memory in the script are such in the file
            names = [each for each in there if each in saved.arrays]
            pairs.append((_sharing(wanted[-1], there, names), _sharing(found[-1], saved.arrays, names)))
        return all(is_same(one, two, self._tolerance) for one, two in pairs)


class _State:
    """The state of a script, to be put back after calls that change it."""

    def __init__(self, checkpoint: Any, path: str) -> None:
        import torch

        self._torch, self._checkpoint, self._path = torch, checkpoint, path
        self._random = torch.get_rng_state()
        self._copies = self.copied()
        self._products: set[str] = set()

    def present(self) -> dict[str, Any]:
        """The tensors of the state, by name."""
        live = writing.live(self._checkpoint, self._path)[2]
        return {name: each for name, each in live.items() if isinstance(each, self._torch.Tensor)}

    def copied(self) -> dict[str, Any]:
        """Copies of them."""
        return {name: each.clone() for name, each in self.present().items()}

    def had(self, name: str) -> bool:
        """Whether a tensor was there before the first step."""
        return name in self._copies

    def put_back(self, is_new: bool = False) -> None:
        """What has come since is as before the first step: sums are zero, and products are one. ``is_new``: optimizers
        without a state at first have none again.
        """
        torch = self._torch
        if is_new:
            self._clear()
        with torch.no_grad():
            for name, tensor in self.present().items():
                if self.had(name):
                    tensor.copy_(self._copies[name])
                else:
                    tensor.fill_(name in self._products)
        torch.set_rng_state(self._random)

    def learn_products(self, tape: Tape) -> None:
        """What steps only multiply would stay zero: it begins with one, as what NAdam has of its momenta."""
        for name, tensor in self.present().items():
            changes = [step.name for step in tape.steps if address_of(tensor) in step.writes]
            if changes and all(each.startswith(_MULTIPLIES) for each in changes):
                self._products.add(name)

    def _clear(self) -> None:
        for path, optimizer in writing.live(self._checkpoint, self._path)[0].optimizers().items():
            if not any(name.startswith(f"{path}/") for name in self._copies):
                optimizer.state.clear()
            if not any(name.endswith(GRADIENT) for name in self._copies):
                optimizer.zero_grad()

    @contextlib.contextmanager
    def seeded(self) -> Iterator[None]:
        """Examples that are the same each time, and not what the script would draw."""
        self._torch.manual_seed(0)
        yield
        self._torch.set_rng_state(self._random)


def _sharing(result: Any, arrays: dict[str, Any], names: list[str]) -> list[int]:
    import torch

    tensors = [each for each in parts(result) if isinstance(each, torch.Tensor)]
    return compiled_steps.sharing([*tensors, *(arrays[name] for name in names)])


def _size_of(tape: Tape) -> int | None:
    return next((each.shape[0] for each in tape.arguments if each.shape), None)


def _number(spec: InputSpec) -> Any:
    return {"bool": True}.get(spec.dtype, 1 if "int" in spec.dtype else 0.5)
