# SPDX-License-Identifier: MIT
"""Recordings that run as compiled code, where torch's compiler makes fewer and faster kernels of their operators.

The compiler works beside the program, which goes on with the recording meanwhile. Its code adds up in another order, so
it is compared with the recording within a tolerance before it is used, and what is outside of that stays recorded.
"""

from __future__ import annotations

import time
from typing import Any

from ..compiling.compilation import Compilation
from ..system import extension, log
from . import comparison
from .compiled_plan import Memory, Uncompilable, plan_of
from .operations import address_of
from .recorder import ALONE
from .returned import filled
from .tape import Tape

_CHECKS = 3
TOLERANCE = 1e-5
"""Of code, where none is given."""


class CompiledReplay:
    """Runs like ``Replay`` of the extension: as compiled code, once that is there and was compared with it.

    ``tolerance``: how far numbers of the code may be from those of the recording, relative to the largest of a tensor,
    now and in former checks (``largest``, see ``difference_of``).
    """

    def __init__(
        self, replay: Any, tape: Tape, inputs: list[Any], name: str, tolerance: float, largest: dict[int, float] | None
    ) -> None:
        self._replay, self._tape, self._name = replay, tape, name
        self._tolerance, self._largest = tolerance, largest
        self._obstacle = ""
        self._compilation: Compilation | None = None
        self._code: Any = None
        self._checks = _CHECKS
        self._writes = bool(tape.written or tape.written_inputs or tape.gradients_after)
        try:
            after = (slot for _, slot, _ in tape.gradients_after)
            self._memory = Memory(tape.constants, tape.inputs, (*tape.results, *after))
            self._plan = plan_of(tape, inputs, self._memory)
        except Uncompilable as reason:
            self._obstacle = str(reason)

    def start(self) -> None:
        """The recording is trusted: let the compiler begin."""
        if self._obstacle:
            self._stay(self._obstacle)
            return
        self._begin = time.perf_counter()
        self._compilation = Compilation(self._plan, self._loaded)

    def run(self, args: tuple, named: dict[str, Any]) -> Any:
        """A tuple of tensors, or NotImplemented."""
        return self._replay.run(args, named, self._code) if self.is_compiled() else self._not_yet(args, named)

    def is_compiled(self) -> bool:
        """True once calls run as compiled code."""
        return self._code is not None and not self._checks

    def wait(self, seconds: float) -> bool:
        """True once the compiler has ended."""
        return self._compilation is None or self._compilation.wait(seconds)

    def _not_yet(self, args: tuple, named: dict[str, Any]) -> Any:
        compilation = self._compilation
        # one thread compares; the others go on with the recording, as does what is called by another comparison
        if (self._code is None and (compilation is None or not compilation.wait(0))) or not ALONE.acquire(False):
            return self._replay.run(args, named)
        try:
            if self._compilation is not None:
                self._take(self._compilation)
            if self._code is not None and self._writes and self._replay.is_shared:
                # what another thread learns meanwhile would be taken back
                self._stay("several threads call it")
            return self._replay.run(args, named) if self._code is None else self._checked(args, named)
        finally:
            ALONE.release()

    def _take(self, compilation: Compilation) -> None:
        self._compilation = None
        if compilation.failure:
            self._stay(compilation.failure)
            return
        self._code = compilation.code
        log.info(f"{self._name}: compiled in {time.perf_counter() - self._begin:.1f} s")

    def _stay(self, why: str) -> None:
        self._code, self._compilation = None, None
        log.job_warning(f"{self._name} stays recorded and is not compiled: {why}")

    def _loaded(self, path: str) -> Any:
        memory, tape = self._memory, self._tape
        writes = bool(tape.written), bool(tape.written_inputs)
        return extension.module().Code(path, tape.inputs, memory.tensors, memory.computed, *writes)

    def _checked(self, args: tuple, named: dict[str, Any]) -> Any:
        """The call from the recording, and then as compiled code on what was there before."""
        given = self._replay.given(args, named)
        if given is NotImplemented:
            return given
        inputs, *_ = given
        before = comparison.State(self._tape, inputs)
        expected = self._replay.run(args, named)
        if expected is NotImplemented or not self._code.takes(inputs):
            return expected
        after = comparison.State(self._tape, inputs)
        before.restore()
        try:
            results = self._replay.run(args, named, self._code)
            if results is NotImplemented:  # a late check is due
                return expected
            why = self._difference(inputs, expected, results, after)
        except RuntimeError as failure:
            why = str(failure).partition("\n")[0]
        finally:
            after.restore()
        self._checks -= 1
        if why:
            self._stay(why)
        return expected

    def _difference(self, inputs: list[Any], expected: tuple, results: tuple, after: comparison.State) -> str:
        around = [*inputs, *self._memory.tensors]
        gradients = [parameter.grad for parameter, _, _ in self._tape.gradients_after]
        of_recording = [gradient for _, gradient in after.gradients]
        if sharing([*around, *expected, *of_recording]) != sharing([*around, *results, *gradients]):
            return "a result shares its memory with something that is there, or with another result"
        result, found = (filled(self._tape.template, each) for each in (expected, results))
        found = found, comparison.compared(after.places)
        text = comparison.difference_of(after, result, found, self._tolerance, self._largest, "compiled code")
        return text and f"{text}: more than tolerance={self._tolerance:g} of the largest"


def sharing(tensors: list[Any]) -> list[int]:
    """For each tensor the first one with its memory."""
    first: dict[int, int] = {}
    found = []
    for place, each in enumerate(tensors):
        address = 0 if each is None else address_of(each)
        found.append(first.setdefault(address, place) if address else -1)
    return found
