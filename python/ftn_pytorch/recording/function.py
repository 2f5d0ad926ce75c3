# SPDX-License-Identifier: MIT
"""``recorded``: a function whose calls are recorded, checked and then made again without Python."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..errors import FtnPytorchError
from ..system import extension, log, private_names, process, thread_recorder
from . import collectives, comparison, compiled_steps, cuda_graphs, late_checks
from .arguments import Call, is_followed, key_of, tensors_in
from .following import Known
from .left_values import given, run_of
from .places import difference
from .recorded_call import record
from .recorder import ALONE, OTHERS
from .returned import mapped, parts
from .tape import Tape
from .variant import Variant

_WARM_UP = 2
_ATTEMPTS = 3
_LIMIT = 24
_LOSSES = 8
_DETOURS = 2
_DETOUR = 20
_LASTING = 100
_TURNS = 4
_LONGEST_PAUSE = 1000
_OTHER_ARGUMENTS = (
    "its arguments are of other shapes, types or values in each call: pass a number that changes as a tensor"
)
_OF_GUARDS = (
    "count in a tensor (n.add_(1)) where numbers depend on it, and do outside what returns it or puts it into a list"
)
_OTHERWISE = (
    "torch computes otherwise while it is recorded, or adds up in no fixed order: allow for that with "
    "recorded(tolerance=...)"
)
_MEANT = {
    "gradient": "gradients are not set as they were",
    "memory": "a tensor has other memory",
    "number": "a number of an optimizer has become zero, or no number",
    "branch": "the step of an optimizer goes another way",
}


def recorded(
    function: Callable | None = None,
    *,
    optimizer: Any = None,
    checks: int = 3,
    tolerance: float = 0.0,
    ignore: Sequence[str] = (),
    compiled: bool = False,
) -> Any:
    """Decorator of a function that computes with tensors only: after some calls it runs without Python.

    The first calls are made as they are, one is recorded, and the next ``checks`` calls are made both ways and
    compared: bit for bit, or up to ``tolerance``, relative to the largest value that a tensor has had in a check. Other
    shapes, types and modes are recorded by themselves. A function that cannot be recorded goes on as it is, and one
    warning says why.

    optimizer: one, or a list, where no name that the function uses leads to it. Each call reads its numbers.
    ignore: names on which no number depends, as messages write them ("self.history"). Nobody looks at them.
    compiled: torch's compiler makes code of the recording, which may differ from it by ``tolerance``, or 1e-5 for 0.
    Where there is no such code, the recording goes on, and one warning says why.

    The results carry no gradients of parameters; call ``backward`` inside. What is returned has the attribute
    ``recording``, see ``RecordedFunction``. ARGUMENT if ``checks`` or ``tolerance`` make no sense.
    """
    if function is None:
        return functools.partial(
            recorded, optimizer=optimizer, checks=checks, tolerance=tolerance, ignore=ignore, compiled=compiled
        )
    if not callable(function):
        raise FtnPytorchError("ARGUMENT", f"recorded is given a {type(function).__name__}, which cannot be called")
    if checks < 0 or tolerance < 0:
        raise FtnPytorchError("ARGUMENT", f"checks={checks} and tolerance={tolerance} must not be negative")
    others = tuple(optimizer) if isinstance(optimizer, (list, tuple)) else (() if optimizer is None else (optimizer,))
    if isinstance(ignore, str) or not all(isinstance(each, str) for each in ignore):
        raise FtnPytorchError("ARGUMENT", f'ignore={ignore!r} must be a list of names, ["self.history"]')
    recording = RecordedFunction(function, others, checks, tolerance, frozenset(ignore), compiled)

    # a network has fields, which a function does not need
    @functools.wraps(function, updated=())
    def call(*args: Any, **named: Any) -> Any:
        return recording(args, named)

    call.recording = recording  # type: ignore[attr-defined]
    return call


class RecordedFunction:
    """The recordings of one function.

    ``obstacle`` says why it runs as it is, empty if it does not; ``operations`` are the operator calls of the newest
    recording, 0 as long as there is none. ``is_ready``: calls like the last one run without Python.
    """

    def __init__(
        self, function: Callable, others: tuple, checks: int, tolerance: float, ignored: frozenset[str], compiled: bool
    ) -> None:
        self.name = getattr(function, "__qualname__", type(function).__name__)
        self.obstacle = ""
        self.operations = 0
        self._function = function
        self._others = others
        self._checks = checks
        self._tolerance = tolerance
        self._ignored = ignored
        self._tolerance_of_code = (tolerance or compiled_steps.TOLERANCE) if compiled else None
        self._known = Known()
        self._variants: dict[Any, list[Variant]] = {}
        self._ready: tuple[Variant, ...] = ()
        self._lost = 0
        self._detours = 0
        """How many recordings went a way that few other calls have gone."""
        self._is_busy = False
        self._turn = threading.RLock()
        """Held from the question what counts are to what a run adds to them: other threads count with them, too."""

    @property
    def is_ready(self) -> bool:
        return bool(self._ready)

    def tapes(self) -> list[Tape]:
        """What runs without Python, the oldest first."""
        return [variant.tape for variant in reversed(self._ready) if variant.tape is not None]

    def reset(self) -> None:
        """Forget all recordings. To be called before ``destroy_process_group``, which waits for CUDA graphs."""
        with ALONE:
            for variant in (each for group in self._variants.values() for each in group):
                if isinstance(variant.runner, cuda_graphs.GraphReplay):
                    variant.runner.reset()
            self._ready, self._lost = (), 0
            self._variants.clear()

    def __call__(self, args: tuple, named: dict[str, Any]) -> Any:
        if thread_recorder.is_aside() or private_names.is_forward_differentiated():
            return self._function(*args, **named)
        for variant in self._ready:
            if (found := variant.run(args, named)) is not NotImplemented:
                return found
        if is_followed(args, named):
            return self._function(*args, **named)
        # One thread records; the others compute meanwhile. So does what is called while another function is recorded.
        if self.obstacle or self._is_busy or extension.is_intercepted() or not ALONE.acquire(blocking=False):
            return self._as_it_is(args, named)
        try:
            self._is_busy = True
            found = self._next(Call(self._function, args, named))
        finally:
            self._is_busy = False
            ALONE.release()
        return self._as_it_is(args, named) if found is NotImplemented else without_graph(found)

    def _as_it_is(self, args: tuple, named: dict[str, Any]) -> Any:
        return without_graph(self._function(*args, **named))

    def _next(self, call: Call) -> Any:
        """The result; NotImplemented for a call to be made as it is, which other threads need not wait for."""
        if extension.obstacle():
            self._give_up(extension.obstacle())
            return NotImplemented
        variant = self._chosen(key_of(given(call.args, self._known.given), call.named))
        if variant is None or variant.is_plain or self.obstacle:
            return NotImplemented
        if variant.pause > 0:
            variant.pause -= 1
            return NotImplemented
        if variant.tape is not None:
            return self._check(variant, call)
        variant.calls += 1
        return NotImplemented if variant.calls <= _WARM_UP else self._record(variant, call)

    def _chosen(self, key: Any) -> Variant | None:
        """What to check or to record in a call for which no recording is ready; None to leave it as it is."""
        if key not in self._variants:
            if len(self._variants) == _LIMIT:
                once = next((old for old, (each, *_) in self._variants.items() if each.calls <= 1), None)
                if once is None:
                    return None
                del self._variants[once]
                self._lose(_OTHER_ARGUMENTS)
            self._variants[key] = [Variant(key)]
        why = ""
        for variant in [each for each in self._variants[key] if each.tape is not None]:
            assert variant.tape is not None
            if (guard := next((guard for guard in variant.tape.guards if not guard.holds()), None)) is not None:
                why = f"{guard.text} is another one: {_OF_GUARDS}"
                continue
            changed = extension.module().first_change(variant.tape.bindings)
            if changed < 0:
                is_due = variant.checks > 0 or variant.replay.why()[0] == "check"
                return variant if is_due else self._instead_of(variant, variant.replay)
            what, values = difference(variant.tape.bindings[changed])
            why = f"{what} is another one"
            # a plain value may come back, such as that of train() and eval()
            if not values:
                self._drop(variant, why)
        return self._fresh(key, why)

    def _instead_of(self, variant: Variant, replay: Any) -> Variant | None:
        """What to record after a recording did not hold for a call; None if nothing has changed for good."""
        kind, index = replay.why()
        assert variant.tape is not None
        if kind == "failure" and (why := variant.tape.number_required_at(index)):
            self._astray(variant, why)
        if kind in ("failure", "arguments", "modes", "check"):
            return None
        meant = _MEANT.get(kind) or f"{difference(variant.tape.bindings[index])[0]} is another one"
        self._drop(variant, meant)
        if kind == "gradient":
            known = self._known.gradients
            known += [each for each in variant.tape.gradients_read() if not any(map(each.is_that_of, known))]
            return None  # the key is another one now
        return self._fresh(variant.key, meant)

    def _astray(self, variant: Variant, why: str) -> None:
        """A number in a tensor was another one: the call is made as it is. Where many in a row are, the other way is
        recorded, and nothing is if that does not last either."""
        if variant.goes_astray(_ATTEMPTS if variant.replay.runs < _LASTING else _DETOUR):
            self._detours = self._detours + 1 if variant.replay.runs < _LASTING else 1
            self._drop(variant, "a number in a tensor is another one")
            if self._detours == _DETOURS:
                self._leave(variant, why)

    def _fresh(self, key: Any, why: str) -> Variant:
        """The one of a kind of call that is to be recorded."""
        group = self._variants.setdefault(key, [])
        if not group or group[-1].tape is not None:
            log.info(f"{self.name}: recorded again, because {why}")
            checked = [each for each in group if each.checks > 0]
            takes_turns = all(type(g.value) is bool for each in checked if each.tape for g in each.tape.guards)
            if len(checked) > (_TURNS if takes_turns else 1):
                self._drop(checked[0], why)
            if len(self._ready) >= _LIMIT:
                self._drop(self._ready[-1], why)
            group.append(Variant(key, _WARM_UP - 1))
        return group[-1]

    def _drop(self, variant: Variant, why: str) -> None:
        self._ready = tuple(each for each in self._ready if each is not variant)
        if variant in (group := self._variants.get(variant.key, [])):
            group.remove(variant)
            # what was left told itself from others by the guards of these
            group[:] = [each for each in group if not each.is_plain]
        if variant.replay.runs < _LASTING:
            self._lose(f"what it uses changes from call to call: {why}")

    def _lose(self, why: str) -> None:
        self._lost += 1
        if self._lost > _LOSSES:
            self._give_up(why)

    def _record(self, variant: Variant, call: Call) -> Any:
        start = time.perf_counter()
        args, named = given(call.args, self._known.given), call.named
        result, tape = record(call, self._others, self._ignored, self._known)
        if tape == OTHERS:
            self._postpone(variant)
            return result
        if isinstance(tape, str):
            variant.attempts += 1
            # what is made in first calls has another chance
            if variant.attempts == _ATTEMPTS:
                self._leave(variant, tape)
            return result
        compared = None
        try:
            if self._checks and collectives.asks_ranks(tape):
                compared = collectives.Compared(tape)
                compared.replay = extension.module().Replay(args, named, compared.tape)
            replay = extension.module().Replay(args, named, tape)
        except (LookupError, RuntimeError, TypeError, ValueError) as failure:
            self._give_up(f"an operation cannot be called from C++: {str(failure).partition(chr(10))[0]}")
            return result
        variant.replay = variant.runner = replay
        variant.tape, variant.checks, variant.compared = tape, self._checks, compared
        variant.largest = {} if self._tolerance or self._tolerance_of_code else None
        inputs = tensors_in(args, named)
        if (device := cuda_graphs.device_of(tape, inputs)) is not None:
            if self._tolerance_of_code is not None:
                log.info(f"{self.name} is not compiled: its tensors are on a GPU")
            if why := cuda_graphs.obstacle(tape, inputs, device):
                log.info(f"{self.name}: no CUDA graph, because {why}")
            else:
                trial = compared and compared.replay
                variant.runner = cuda_graphs.GraphReplay(replay, tape, self.name, device, trial)
        elif self._tolerance_of_code is not None:
            about = self.name, self._tolerance_of_code, variant.largest
            variant.runner = compiled_steps.CompiledReplay(replay, tape, inputs, *about)
        variant.run = run_of(variant.runner, replay, tape, self._turn)
        self.operations = len(tape.operations)
        took = time.perf_counter() - start
        log.info(f"{self.name}: recorded in {took:.2f} s, {self.operations} operations")
        if self._checks == 0:
            self._make_ready(variant)
        return result

    def _make_ready(self, variant: Variant) -> None:
        self._ready = (variant, *self._ready)
        if isinstance(variant.runner, compiled_steps.CompiledReplay):
            variant.runner.start()

    def _check(self, variant: Variant, call: Call) -> Any:
        if variant.late is not None:
            return self._check_late(variant, call)
        assert variant.tape is not None
        result, difference = self._both_ways(variant, call)
        if difference is OTHERS:
            self._postpone(variant)
        elif difference is None:
            self._instead_of(variant, (variant.compared or variant).replay)
        elif variant.doubt or (difference and variant.compared is not None):
            self._give_up(difference or f"{variant.doubt}: {_OTHERWISE}")
        elif difference:
            variant.doubt = difference
        else:
            variant.checks -= 1
            variant.postponed = 0
            if variant.checks == 0:
                variant.late = late_checks.LateChecks(variant.replay, variant.tape)
                self._make_ready(variant)
        return result

    def _check_late(self, variant: Variant, call: Call) -> Any:
        assert variant.late is not None
        if not variant.late.begin():
            return NotImplemented
        try:
            result, difference = self._both_ways(variant, call)
        except Exception:
            self._drop(variant, "it raises an exception")
            raise
        if not difference:
            variant.excuses = 0
        elif difference is not OTHERS and result is not NotImplemented:
            self._give_up(f"{variant.late.told()}, {difference}", process.warn)
        variant.late.end()
        return result

    def _both_ways(self, variant: Variant, call: Call) -> tuple[Any, str | None]:
        tolerance = self._tolerance if variant.late is None else self._tolerance_of_code or self._tolerance
        return comparison.both_ways(call, variant, tolerance)

    def _postpone(self, variant: Variant) -> None:
        variant.postponed += 1
        variant.pause = min(2**variant.postponed, _LONGEST_PAUSE)
        if variant.postponed == _ATTEMPTS:
            log.job_warning(f"{self.name} is not recorded yet: while it was looked at, {OTHERS}")

    def _leave(self, variant: Variant, why: str) -> None:
        """These calls cannot be recorded: none is, unless a number that counts tells these from others."""
        others = [each for each in self._variants.get(variant.key, []) if each is not variant and each.tape is not None]
        if not any(each.tape is not None and each.tape.guards for each in others):
            self._give_up(why)
            return
        log.info(f"{self.name}: some calls are not recorded: {why}")
        self._detours = 0
        self._variants[variant.key] = [*others, Variant(variant.key, is_plain=True)]

    def _give_up(self, why: str, tell: Callable[[str], None] = log.job_warning) -> None:
        self.obstacle = why
        self._ready = ()
        self._variants.clear()
        tell(f"{self.name} is not recorded: {why}")


def without_graph(value: Any) -> Any:
    """A result whose tensors carry no gradients. What is one tensor stays one."""
    made: dict[int, Any] = {}

    def without(each: Any) -> Any:
        if isinstance(each, torch.Tensor):
            return made.setdefault(id(each), each.detach()) if each.requires_grad else each
        if not any(isinstance(part, torch.Tensor) and part.requires_grad for part in parts(each)):
            return each
        return mapped(without, each)

    return without(value)
