# SPDX-License-Identifier: MIT
"""A call of a function, made and recorded: what came out, and the tape, or why there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ..system import private_names
from ..values.held import fields_of
from . import left_values, optimizer_numbers
from .arguments import Given, Held, arguments_of, leaves, tensors_in
from .before_call import Before, Gradient
from .binding import SLOT, Binding
from .bindings import Watch
from .extension import module
from .following import Following, Known
from .optimizer_numbers import Trials
from .places import Guard, Place, Target
from .python_effects import Calls
from .readers import ASKING
from .recorder import OF_NUMBER, Recorder, Unrecordable, unseen
from .returned import PLAIN, Item, Read, mapped
from .schedules import schedules_of
from .tape import (
    Operation,
    Slot,
    address_of,
    exchanges_at_once,
    in_place,
    is_move,
    is_ordinary,
    place_of_waiting,
    without_unused,
)
from .tensor_effects import Outside, changes_of
from .traced_numbers import Branch, Number, formula_of

_NEVER = sys.maxsize
_RETURN_IT = "return what is to go there, and put it there outside, or write into the tensors that are there"


@dataclass
class Tape:
    """What src/recording/module.cpp needs to make the call again. Tensors stand in tuples of one."""

    slots: int
    inputs: list[int]
    """Slot of each tensor among the arguments."""
    constants: list[tuple[int, Any]]
    """Tensors that are there before a call, and views of such."""
    operations: list[tuple[str, str, list[tuple[str, Any]], list[list[int]]]]
    first_write: int
    """Before that operation a failed run has changed nothing and drawn no random number."""
    results: list[int]
    bindings: list[tuple[int, Any, Any, Any]]
    numbers: list[tuple]
    """Those of optimizers, which each call reads."""
    branches: list[Branch]
    gradients_before: list[tuple[Any, bool, Any]]
    """Parameter, whether it has a gradient before the call, and that gradient if it is read or added to."""
    gradients_after: list[tuple[Any, int, int]]
    """Parameter and slot of its new gradient; -1 for none. The operation before which the old one is taken away."""
    outside: list[tuple[Any]]
    """Tensors that are there before a call and that an operator uses."""
    memory: list[tuple[Any]]
    """These, and those that names lead to."""
    written: list[tuple[Any]]
    written_inputs: list[int]
    """Places of those whose memory is written, through whichever tensor."""
    counted_inputs: list[int]
    """Places of those whose version counts that."""
    steps: list[Operation] = field(repr=False)
    """The operations as they were recorded."""
    counts: list[Any] = field(default_factory=list)
    """Tensors out of which a step of an optimizer reads numbers."""
    fixed: set[int] = field(default_factory=set)
    """Slots of tensors that were made of numbers, which nobody changes."""
    generators: list[Any] = field(default_factory=list)
    rewinds: bool = False
    """A failed run has drawn random numbers of the host, which are to be drawn again."""
    casts: bool = False
    """It casts what names lead to, which an autocast around it may keep."""
    asks_switches: bool = False
    """The function may ask torch how it computes, and depends on all of that."""
    is_bare: bool = False
    """Tensors among the arguments must have no attributes, for which the function may ask."""
    watched: list[Binding] = field(default_factory=list)
    """The bindings with their paths."""
    template: Any = None
    """The result, with an ``Item`` for each tensor."""
    given: tuple[Place, ...] = ()
    """What is there is given to a run behind its arguments."""
    left: tuple[tuple[Any, Any], ...] = ()
    """What a run puts where, as a template: targets, and values."""
    guards: list[Guard] = field(default_factory=list)
    """What must hold before a run."""
    arguments: list[Given] = field(default_factory=list)
    modes: tuple = ()
    """Those of torch in which it was made, as the extension tells them."""
    default_type: Any = field(default_factory=torch.get_default_dtype)
    addresses: list[int] = field(default_factory=list)
    """Of ``memory``, when it was made."""

    def gradients_read(self) -> list[Place]:
        """Those that are there before a call and that it reads or adds to."""
        return [
            Place(SLOT, parameter, "grad", "a gradient")
            for parameter, _, used in self.gradients_before
            if used is not None
        ]

    def number_required_at(self, place: int) -> str:
        """What to say where an operation fails in many calls because a number is another one; empty if it is another
        operation."""
        return f"{self.steps[place].place}: {OF_NUMBER}" if self.steps[place].is_required else ""


def record(
    function: Callable,
    args: tuple,
    named: dict[str, Any],
    others: tuple,
    ignored: frozenset[str],
    known: Known,
) -> tuple[Any, Tape | str]:
    """The result of a call, and its tape, or the reason that there is none. The call is made as it always is.

    known: what calls change, as far as attempts have shown. What is found anew is put into it.
    """
    with_places = left_values.given(args, known.given)
    inputs = tensors_in(with_places, named)
    try:
        observers = _observers(function, args, named, inputs, others, ignored, known)
    except Exception as failure:
        observers = unseen(failure)
    if isinstance(observers, str):
        return function(*args, **named), observers
    recorder, trials, before, watch, held_before, following = observers
    versions = [changes_of(each) for each in inputs]
    with trials, watch.reads, Outside(recorder), recorder, following, Calls(recorder, watch) as calls:
        result = function(*args, **named)
    try:
        watch.finish()
        if why := recorder.obstacle or recorder.placed.obstacle(recorder.outside) or watch.obstacle():
            raise Unrecordable(why)
        if changed := held_before.difference():
            raise Unrecordable(f"{changed}: {_RETURN_IT}")
        is_bare = _asks_for_attributes(watch, inputs)
        schedules = schedules_of(calls.scheduled, trials, watch)
        left = [*left_values.found(watch, known, with_places[len(args) :], following), *schedules]
        _require_pure(watch, before.rates, calls, [group for each, _ in schedules for group in each.groups()])
        if path := before.drawn():
            raise Unrecordable(f"it draws numbers from {path}: draw them with torch, or outside, and pass them")
        counted = [place for place, each in enumerate(inputs) if changes_of(each) != versions[place]]
        tape = _tape(recorder, watch, before.gradients(), (result, left), counted, *_numbers(recorder, trials))
        tape.arguments, tape.modes, tape.is_bare = arguments_of(function, args, named), module().modes(), is_bare
        tape.given, tape.guards, tape.asks_switches = known.given, following.guards, calls.asks_switches
        return result, tape
    except Unrecordable as reason:
        return result, str(reason)
    except Exception as failure:
        return result, unseen(failure)
    finally:
        # frames of the call may live on until garbage is collected, and this one with them
        del observers, recorder, trials, before, watch, following, held_before, calls


def _observers(
    function: Callable,
    args: tuple,
    named: dict[str, Any],
    inputs: list[Any],
    others: tuple,
    ignored: frozenset[str],
    known: Known,
) -> Any:
    """What looks on while a call is recorded; or the obstacle, and then nothing of them is left in the call."""
    given = [leaf for leaf in leaves((args, named)) if not isinstance(leaf, (torch.Tensor, *PLAIN))]
    recorder = Recorder(inputs)
    trials = Trials(recorder)
    before = Before(recorder, trials)
    watch = Watch(function, (*others, *given), ignored | known.paths, before.met, known.holders())
    if obstacle := watch.obstacle():
        watch.finish()
        return obstacle
    held_before = Held(function, args, named)
    return recorder, trials, before, watch, held_before, Following(known, recorder, watch.reads, function)


def _asks_for_attributes(watch: Watch, inputs: list[Any]) -> bool:
    """Whether code may ask for attributes of arguments that are not there."""
    for name in (name for each in inputs for name in fields_of(each)):
        if name in watch.names or watch.names & ASKING:
            raise Unrecordable(f"it may read an attribute of an argument ({name}): pass what is in it")
    return bool(watch.names & ASKING)


def _require_pure(watch: Watch, rates: list, calls: Calls, stepped: list[dict]) -> None:
    for source, value in rates:
        if source.value() != value and not any(source.group is each for each in stepped):
            raise Unrecordable(f"it changes {source.key!r} of an optimizer: let the scheduler step outside of it")
    for each in calls.stepping.values():
        if not any(each is known for known in watch.optimizers):
            kind = type(each).__name__
            raise Unrecordable(f"no name that it uses leads to its {kind}: give it as optimizer=")


def _numbers(recorder: Recorder, trials: Trials) -> tuple[list[tuple], list[Branch]]:
    """Those that the steps of optimizers depend on, and which way the steps took."""
    listed: list[tuple] = []
    branches = optimizer_numbers.comparisons_of(recorder, listed)
    for step in trials.steps:
        found, obstacle = optimizer_numbers.find(step, recorder, listed)
        if obstacle:
            raise Unrecordable(obstacle)
        branches += found
    return listed, branches


def _tape(
    recorder: Recorder,
    watch: Watch,
    before: list[Gradient],
    result: Any,
    counted: list[int],
    numbers: list[tuple],
    branches: list[Branch],
) -> Tape:
    outside = recorder.outside
    reached = (
        watch.reached() | {id(each.tensor) for each in before if each.tensor is not None} | set(map(id, recorder.kept))
    )
    for slot, tensor in outside.items():
        if id(tensor) not in reached and slot not in recorder.constants:
            what = "parameter" if tensor.requires_grad else "tensor"
            raise Unrecordable(
                f"{recorder.used_at[slot]}: it uses a {what} that no operator has made and that none of its names "
                "leads to: make it with operators of torch, give it a name, or pass it as an argument"
            )
    after = []
    for parameter, was_there, gradient in before:
        if parameter.grad is not gradient or (was_there and gradient is None):
            made = -1 if parameter.grad is None else recorder.known(parameter.grad)
            if made is None:
                raise Unrecordable("it sets a gradient that no operation has computed")
            after.append((parameter, made, recorder.cleared.get(id(parameter), _NEVER)))
    results: dict[int, int] = {}
    template, left = _template(result, recorder, results)
    needed = {*results.values(), *(slot for _, slot, _ in after)}
    steps = without_unused(_with_constants(recorder, needed), needed)
    steps = in_place(steps, {*needed, *recorder.inputs})
    kept = {*needed, *recorder.inputs, *outside, *recorder.derived}
    # where a gradient was taken away, counted in what is left
    after = [(each, slot, sum(step.number < cleared for step in steps)) for each, slot, cleared in after]
    operations = [_described(operation, last) for operation, last in zip(steps, _last_uses(steps, kept))]
    writes = {address for operation in steps for address in operation.writes}
    casts = [each for each in steps if is_move(each.operator) and not each.writes and next(each.slots(), -1) in outside]
    for each in casts if module().keeps_casts() else ():
        if address_of(outside[next(each.slots())]) in writes:
            raise Unrecordable(
                f"{each.place}: it changes what an autocast around its calls keeps a cast of: enter autocast inside"
            )
    written = {number: tensor for number, tensor in outside.items() if address_of(tensor) in writes}
    inputs = list(zip(recorder.inputs, recorder.held_inputs))
    written_inputs = [place for place, (_, tensor) in enumerate(inputs) if address_of(tensor) in writes]
    changed = {address_of(tensor) for tensor in (*written.values(), *(inputs[place][1] for place in written_inputs))}
    # what other ranks were given cannot be taken back
    first_write = _first(steps, lambda each: bool(each.writes & changed) or exchanges_at_once(each.operator))
    first_random = _first(steps, lambda each: each.is_random)
    rewinds = any(each.is_required for each in steps[first_random:first_write]) and not recorder.generators
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
                f"{each.place}: it catches what fails in {each.name}, after it has changed something or drawn random "
                "numbers, which cannot be taken back: do that outside, or let it raise"
            )
    memory = _each_once([*outside.values(), *watch.tensors])
    return Tape(
        slots=recorder.count,
        inputs=recorder.inputs,
        constants=[*outside.items(), *recorder.derived.items()],
        operations=operations,
        first_write=first_write,
        results=list(results.values()),
        bindings=[binding[:4] for binding in watch.bindings],
        numbers=numbers,
        branches=branches,
        gradients_before=[
            (parameter, was_there, gradient if any(gradient is each for each in outside.values()) else None)
            for parameter, was_there, gradient in before
        ],
        gradients_after=after,
        outside=[(tensor,) for tensor in outside.values()],
        memory=[(tensor,) for tensor in memory],
        addresses=[address_of(tensor) for tensor in memory],
        written=[(tensor,) for tensor in written.values()],
        written_inputs=written_inputs,
        counted_inputs=counted,
        steps=steps,
        counts=[tensor for tensor, _ in recorder.counts.values()],
        fixed={slot for made, (source, _, _) in recorder.constants.items() for slot in (made, source)},
        generators=recorder.generators,
        rewinds=rewinds,
        casts=bool(casts),
        watched=watch.bindings,
        template=template,
        left=tuple(left),
    )


def _first(steps: list[Operation], holds: Callable[[Operation], bool]) -> int:
    return next((place for place, each in enumerate(steps) if holds(each)), len(steps))


def _with_constants(recorder: Recorder, kept: set[int]) -> list[Operation]:
    """The operations; a tensor made of numbers of Python is copied in each run only if that changes or returns it.
    A number that is taken out of a tensor is compared, or copied if it is free."""
    if place := recorder.compared_on_device():
        raise Unrecordable(f"{place}: {OF_NUMBER}")
    writes = {address for operation in recorder.operations for address in operation.writes}
    unneeded = [each for taken in recorder.taken for each in (taken.tests if taken.is_free else [taken.copy])]
    for slot, (source, copy, made) in recorder.constants.items():
        if slot in kept or address_of(recorder.outside[slot]) in writes:
            del recorder.outside[slot]
            recorder.outside[source] = copy
        else:
            unneeded.append(made)
    return [each for each in recorder.operations if not any(each is other for other in unneeded)]


def _each_once(tensors: list[Any]) -> list[Any]:
    return [each for each in {id(each): each for each in tensors}.values() if is_ordinary(each)]


def _template(value: Any, recorder: Recorder, results: dict[int, int]) -> Any:
    """``results``: the slots of tensors, by their identity; a tensor that is returned twice is one in each call."""
    if isinstance(value, torch.Tensor):
        slot = recorder.known(value)
        if slot is None:
            raise Unrecordable("it returns a tensor that no recorded operation has made")
        if fields_of(value):
            raise Unrecordable(f"it returns a tensor with attributes of its own ({', '.join(fields_of(value))})")
        results.setdefault(id(value), slot)
        return Item(list(results).index(id(value)))
    if type(value) is float and (taken := next((t for t in recorder.taken if t.is_free and t.value is value), None)):
        results.setdefault(id(value), taken.slot)
        return Read(list(results).index(id(value)))
    if isinstance(value, (*PLAIN, Item, Target)):
        return value
    found = mapped(lambda each: _template(each, recorder, results), value)
    if found is None:
        kind = type(value).__name__
        raise Unrecordable(f"it returns a {kind}; tensors, constants and containers of them can be recorded")
    return found


def _last_uses(steps: list[Operation], kept: set[int]) -> list[set[int]]:
    """Slots that each operation is the last one to need."""
    seen = set(kept)
    found = []
    for operation in reversed(steps):
        slots = set(operation.slots())
        found.append(slots - seen)
        seen |= slots
    return found[::-1]


def _described(operation: Operation, last: set[int]) -> tuple[str, str, list[tuple[str, Any]], list[list[int]]]:
    """Name, overload, arguments and results, as ``operation_of`` in src/recording/module.cpp takes them."""
    arguments: list[tuple[str, Any]] = []
    flat = list(operation.slots())
    waiting = place_of_waiting(operation.operator)
    for index, value in enumerate(operation.arguments):
        if isinstance(value, Number):
            arguments.append(("number", value.formula))
        elif isinstance(value, Slot):
            # moved only if the call is given it once
            is_last = value.number in last and flat.count(value.number) == 1
            arguments.append(("last" if is_last else "slot", value.number))
        elif isinstance(value, list) and any(isinstance(item, Slot) for item in value):
            arguments.append(("list", [-1 if item is None else item.number for item in value]))
        elif isinstance(value, list) and any(isinstance(item, Number) for item in value):
            arguments.append(("numbers", [formula_of(item) for item in value]))
        else:
            # a stream that is captured cannot be waited for, and what is copied there is not written meanwhile
            arguments.append(("waits" if index == waiting else "value", value))
    schema = private_names.schema_of(operation.operator)
    return schema.name, schema.overload_name, arguments, operation.results
