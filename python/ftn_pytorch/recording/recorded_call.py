# SPDX-License-Identifier: MIT
"""A call of a function, made and recorded: what came out, and the tape, or why there is none."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.weak import TensorWeakRef

from ..system.extension import module
from ..values.held import fields_of
from ..values.optimizer_settings import sources_of
from . import left_values, operations, optimizer_numbers
from .arguments import Call, Held, arguments_of, leaves, tensors_in
from .bindings import Watch
from .following import Following, Known
from .memory_spans import are_apart
from .operations import Operation, address_of, exchanges_at_once, in_place, is_ordinary, parameters_of, without_unused
from .optimizer_numbers import Trials
from .places import Target
from .python_effects import Calls
from .reads import ASKING
from .recorder import OF_MEMORY, OF_NUMBER, Recorder, Unrecordable, unseen
from .returned import PLAIN, Item, Read, mapped
from .schedules import schedules_of
from .tape import Tape
from .tensor_effects import Outside, changes_of


def record(call: Call, others: tuple, ignored: frozenset[str], known: Known) -> tuple[Any, Tape | str]:
    """The result of a call, and its tape, or the reason that there is none. The call is made as it always is.

    others: optimizers to which no name leads. ignored: paths that do not count. known: what calls change, as far as
    attempts have shown. What is found anew is put into it.
    """
    why = ""
    try:
        observers = _Observers(call, others, ignored, known)
    except Exception as failure:
        why = unseen(failure)
    if why:
        return call.function(*call.args, **call.named), why
    recorder, watch = observers.recorder, observers.watch
    calls = Calls(recorder, watch, observers.trials)
    with watch.reads, Outside(recorder), recorder, observers.following.footprints or contextlib.nullcontext(), calls:
        result = call.function(*call.args, **call.named)
    try:
        return result, observers.tape(result, calls)
    except Exception as failure:
        return result, unseen(failure)
    finally:
        # frames of the call may live on until garbage is collected, and this one with them
        del observers, recorder, watch, calls


class _Observers:
    """What looks on while a call is recorded. Unrecordable where it need not: nothing of it is left in the call."""

    def __init__(self, call: Call, others: tuple, ignored: frozenset[str], known: Known) -> None:
        self._call, self._known = call, known
        objects = [each for each in leaves((call.args, call.named)) if not isinstance(each, (torch.Tensor, *PLAIN))]
        with_places = left_values.given(call.args, known.given)
        self._places = with_places[len(call.args) :]
        self._inputs = tensors_in(with_places, call.named)
        self.recorder = Recorder(self._inputs)
        self.trials = Trials(self.recorder)
        self._before = _Before(self.recorder)
        paths = ignored | known.paths
        counts = [place.holder for place in (*known.numbers, *(way.place for way in known.ways))]
        self.watch = Watch(call.function, (*others, *objects), paths, self._before.met, counts)
        if obstacle := self.watch.obstacle():
            self.watch.finish()
            raise Unrecordable(obstacle)
        self._held, self._modes = Held(call), module().modes()
        self.following = Following(known, self.recorder, self.watch.reads, call.function)
        self._versions = [changes_of(each) for each in self._inputs]
        self._results: dict[int, int] = {}
        """Slots of tensors that come out, by their identity: one that is returned twice is one in each call."""

    def tape(self, result: Any, calls: Calls) -> Tape:
        """What has come out is a result, and what the call has left in names."""
        recorder, watch, following = self.recorder, self.watch, self.following
        watch.finish()
        if why := recorder.obstacle or watch.obstacle() or self._held.difference():
            raise Unrecordable(why)
        if module().modes() != self._modes:
            raise Unrecordable(
                "it leaves torch in another mode (gradients, default type, precision, ...), which a run does not: set "
                "it outside, or put it back"
            )
        is_bare = self._asks_for_attributes(calls)
        schedules = schedules_of(calls.scheduled, self.trials, watch)
        left = [*left_values.found(watch, self._known, self._places, following), *schedules]
        if why := self._before.changed([group for each, _ in schedules for group in each.groups()]):
            raise Unrecordable(why)
        numbers: list[tuple] = []
        branches = optimizer_numbers.comparisons_of(recorder, numbers)
        for step in self.trials.steps:
            branches += optimizer_numbers.find(step, recorder, numbers)
        self._require_known()
        after = self._gradients_after()
        template, left = self._template((result, left))
        needed = {*self._results.values(), *(slot for _, slot, _ in after)}
        steps = in_place(without_unused(self._with_constants(needed), needed), {*needed, *recorder.inputs})
        outside, inputs = recorder.outside, self._inputs
        writes = {address for operation in steps for address in operation.writes}
        written = [tensor for tensor in outside.values() if address_of(tensor) in writes]
        written_inputs = [place for place, tensor in enumerate(inputs) if address_of(tensor) in writes]
        changed = {address_of(tensor) for tensor in (*written, *(inputs[place] for place in written_inputs))}
        first_write, rewinds = self._first_write(steps, changed)
        enters_inference = self._enters_inference(steps)
        memory = {id(each): each for each in (*outside.values(), *watch.tensors) if is_ordinary(each)}
        return Tape(
            slots=recorder.count,
            inputs=recorder.inputs,
            constants=[*outside.items(), *recorder.derived.items()],
            steps=steps,
            first_write=first_write,
            results=list(self._results.values()),
            bindings=watch.bindings,
            numbers=numbers,
            branches=branches,
            gradients_before=[
                (parameter, was_there, gradient if any(gradient is each for each in outside.values()) else None)
                for parameter, was_there, gradient in self._before.gradients()
            ],
            # where a gradient was taken away, counted in what is left
            gradients_after=[
                (each, slot, sum(step.number < cleared for step in steps)) for each, slot, cleared in after
            ],
            memory=[(tensor,) for tensor in memory.values()],
            addresses=[address_of(tensor) for tensor in memory.values()],
            written=[(tensor,) for tensor in written],
            parts=self._parts(steps, written),
            written_inputs=written_inputs,
            counted_inputs=[place for place, each in enumerate(inputs) if changes_of(each) != self._versions[place]],
            enters_inference=enters_inference,
            counts=[tensor for tensor, _ in recorder.counts.values()],
            fixed={slot for made, (source, _, _) in recorder.constants.items() for slot in (made, source)},
            generators=recorder.generators,
            rewinds=rewinds,
            casts=self._casts(steps, writes),
            asks_switches=calls.asks_switches,
            is_bare=is_bare,
            template=template,
            given=self._known.given,
            left=left,
            guards=following.guards,
            arguments=arguments_of(self._call),
            modes=self._modes,
            gives_modes=calls.modes,
        )

    def _enters_inference(self, steps: list[Operation]) -> bool:
        """Whether a run is in inference mode where its caller is not: all of it, or nothing."""
        is_around = torch.is_inference_mode_enabled()
        enters = not is_around and all(step.in_inference for step in steps)
        for step in steps:
            if step.in_inference != (is_around or enters) and {*sum(step.results, [])} & {*self._results.values()}:
                raise Unrecordable(
                    f"{step.place}: what comes out is made in another inference mode than the rest: enter it around "
                    "the whole function"
                )
        return enters

    def _asks_for_attributes(self, calls: Calls) -> bool:
        """Whether code may ask for attributes of arguments that are not there."""
        names = self.watch.names
        asks = calls.asks_attributes or bool(names & ASKING)
        for name in (name for each in self._inputs for name in fields_of(each)):
            if name in names or asks:
                raise Unrecordable(f"it may read an attribute of an argument ({name}): pass what is in it")
        return asks

    def _require_known(self) -> None:
        """Of each tensor from outside it is known where it is in the next call, and of all memory whose it is."""
        recorder = self.recorder
        gradients = {id(gradient) for _, _, gradient in self._before.gradients()}
        reached = {*self.watch.reached(), *gradients, *map(id, recorder.kept)}
        for slot, tensor in recorder.outside.items():
            if id(tensor) not in reached and slot not in recorder.constants:
                what = "parameter" if tensor.requires_grad else "tensor"
                raise Unrecordable(
                    f"{recorder.used_at[slot]}: it uses a {what} that no operator has made and that none of its names "
                    "leads to: make it with operators of torch, give it a name, or pass it as an argument"
                )
        memory = set(map(address_of, recorder.outside.values()))
        for slot, tensor in recorder.derived.items():
            if address_of(tensor) not in memory:
                raise Unrecordable(f"{recorder.used_at[slot]}: {OF_MEMORY}")

    def _parts(self, steps: list[Operation], written: list[Any]) -> list[Any]:
        there = {**self.recorder.outside, **self.recorder.derived}
        changed = {slot: there[slot] for step in steps for slot in step.changed if slot in there}
        # what has several elements in one place, such as an expanded view, cannot be written back
        parts = {slot: each for slot, each in changed.items() if is_ordinary(each) and are_apart(each)}
        # of others, such as what the call has made, it is not known what of that memory
        others = {address for step in steps if not parts.keys() >= set(step.changed) for address in step.writes}
        return [*parts.values(), *(each for each in written if address_of(each) in others)]

    def _gradients_after(self) -> list[tuple[Any, int, int]]:
        """Parameters with other gradients, the slots of these, and how many operations there were when the old one was
        taken away."""
        found = []
        for parameter, was_there, gradient in self._before.gradients():
            if parameter.grad is not gradient or (was_there and gradient is None):
                made = -1 if parameter.grad is None else self.recorder.known(parameter.grad)
                if made is None:
                    raise Unrecordable("it sets a gradient that no operation has computed")
                found.append((parameter, made, self.recorder.cleared.get(id(parameter), sys.maxsize)))
        return found

    def _with_constants(self, kept: set[int]) -> list[Operation]:
        """The operations; a tensor made of numbers of Python is copied in each run only if that changes or returns it.
        A number that is taken out of a tensor is compared, or copied if it is free."""
        recorder = self.recorder
        for taken in recorder.taken:
            # to compare it on a GPU would end all work there where it is another one
            if not taken.is_free and not taken.copy.on_host:
                raise Unrecordable(f"{taken.copy.place}: {OF_NUMBER}")
        writes = {address for operation in recorder.operations for address in operation.writes}
        unneeded = [each for taken in recorder.taken for each in (taken.tests if taken.is_free else [taken.copy])]
        for slot, (source, copy, made) in recorder.constants.items():
            if slot in kept or address_of(recorder.outside[slot]) in writes:
                del recorder.outside[slot]
                recorder.outside[source] = copy
            else:
                unneeded.append(made)
        return [each for each in recorder.operations if not any(each is other for other in unneeded)]

    def _casts(self, steps: list[Operation], writes: set[int]) -> bool:
        outside = self.recorder.outside
        casts = [each for each in steps if operations.is_move(each.operator) and not each.writes]
        casts = [each for each in casts if next(each.slots(), -1) in outside]
        for each in casts if module().keeps_casts() else ():
            if address_of(outside[next(each.slots())]) in writes:
                raise Unrecordable(
                    f"{each.place}: it changes what an autocast around its calls keeps a cast of: enter autocast inside"
                )
        return bool(casts)

    def _first_write(self, steps: list[Operation], changed: set[int]) -> tuple[int, bool]:
        """Where a run cannot be left any more, and whether one that is left draws random numbers again."""
        # what other ranks were given cannot be taken back
        first_write = _first(steps, lambda each: bool(each.writes & changed) or exchanges_at_once(each.operator))
        first_random = _first(steps, lambda each: each.is_random)
        rewinds = any(each.is_required for each in steps[first_random:first_write]) and not self.recorder.generators
        rewinds = rewinds and all(each.on_host for each in steps if each.is_random)
        first_write = first_write if rewinds else min(first_write, first_random)
        for each in steps[first_write:]:
            if each.is_required:
                raise Unrecordable(
                    f"{each.place}: {OF_NUMBER}; before it, something was changed, or random numbers were drawn, which "
                    "cannot be taken back where the number is another one"
                )
            if each.is_tried:
                raise Unrecordable(
                    f"{each.place}: it catches what fails in {each.name}, after it has changed something or drawn "
                    "random numbers, which cannot be taken back: do that outside, or let it raise"
                )
        return first_write, rewinds

    def _template(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            slot = self.recorder.known(value)
            if slot is None:
                raise Unrecordable("it returns a tensor that no recorded operation has made")
            if fields_of(value):
                raise Unrecordable(f"it returns a tensor with attributes of its own ({', '.join(fields_of(value))})")
            return Item(self._numbered(value, slot))
        free = (each for each in self.recorder.taken if each.is_free and each.value is value)
        if type(value) is float and (taken := next(free, None)):
            return Read(self._numbered(value, taken.slot))
        if isinstance(value, (*PLAIN, Target)):
            return value
        found = mapped(self._template, value)
        if found is None:
            kind = type(value).__name__
            raise Unrecordable(f"it returns a {kind}; tensors, constants and containers of them can be recorded")
        return found

    def _numbered(self, value: Any, slot: int) -> int:
        self._results.setdefault(id(value), slot)
        return list(self._results).index(id(value))


class _Before:
    """What there is before the call: of the objects of torch and the random generators, as they are met."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._rates: list[tuple[Any, float]] = []
        self._gradients: dict[int, tuple[Any, Any]] = {}
        self._random = {"Python's random": (random, _state_of(random))}
        """Other generators than those of torch, by their paths, and their states."""
        if (numpy := sys.modules.get("numpy")) is not None:
            self._random["numpy.random"] = (numpy.random, _state_of(numpy.random))

    def met(self, value: Any, path: str) -> None:
        if isinstance(value, torch.Generator):
            return
        if not isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
            self._random[path] = (value, _state_of(value))
            return
        for each in parameters_of(value):
            # who holds a gradient that the call takes away needs memory for one more
            held = None if each.grad is None else TensorWeakRef(each.grad)
            self._gradients.setdefault(id(each), (each, held))
        if isinstance(value, torch.optim.Optimizer):
            self._rates += [(source, source.value()) for source in sources_of(value)]
            self._recorder.note_counts(optimizer_numbers.counts_of(value))

    def gradients(self) -> list[tuple[Any, bool, Any]]:
        """Each parameter, whether it had a gradient, and that gradient if it is still alive."""
        return [(parameter, ref is not None, ref and ref()) for parameter, ref in self._gradients.values()]

    def changed(self, stepped: list[dict[str, Any]]) -> str:
        """What the call has done that no run does: it has set a number of an optimizer, other than in the groups that
        schedulers have stepped, or drawn random numbers other than torch's. Empty for none of that."""
        for source, value in self._rates:
            if source.value() != value and not any(source.group is each for each in stepped):
                return f"it changes {source.key!r} of an optimizer: let the scheduler step outside of it"
        for path, (generator, state) in self._random.items():
            if _state_of(generator) != state:
                return f"it draws numbers from {path}: draw them with torch, or outside, and pass them"
        return ""


def _state_of(generator: Any) -> Any:
    """Of an object, or of the module that has one."""
    if isinstance(generator, random.SystemRandom):
        return None  # it has none; who draws from it is seen asking the system
    if hasattr(generator, "getstate"):
        return generator.getstate()
    if hasattr(generator, "get_state"):
        return repr(generator.get_state(legacy=False))
    return repr(getattr(generator, "bit_generator", generator).state)


def _first(steps: list[Operation], holds: Callable[[Operation], bool]) -> int:
    return next((place for place, each in enumerate(steps) if holds(each)), len(steps))
