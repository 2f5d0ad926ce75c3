# SPDX-License-Identifier: MIT
"""A call of a function, made and recorded: what came out, and the tape, or why there is none."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.utils.weak import TensorWeakRef

from ..errors import is_of_memory
from ..system import private_names
from ..values.optimizer_settings import sources_of
from ..values.walk import fields_of
from . import left_values, optimizer_numbers
from .arguments import Given, Held, arguments_of, leaves, tensors_in
from .bindings import ASKING, Binding, Facts, Watch
from .left_values import Place
from .optimizer_numbers import Trials
from .python_effects import Calls
from .recorder import TOO_LITTLE, Recorder, Unrecordable
from .returned import PLAIN, Item, mapped
from .tape import (
    Operation,
    Slot,
    address_of,
    exchanges_at_once,
    in_place,
    is_ordinary,
    modes,
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
    is_bare: bool = False
    """Tensors among the arguments must have no attributes, for which the function may ask."""
    watched: list[Binding] = field(default_factory=list)
    """The bindings with their paths."""
    template: Any = None
    """The result, with an ``Item`` for each tensor."""
    given: tuple[Place, ...] = ()
    """What is there is given to a run behind its arguments."""
    left: tuple[tuple[Place, Any], ...] = ()
    """What a run puts there, as a template."""
    arguments: list[Given] = field(default_factory=list)
    modes: tuple = ()
    """Those of torch in which it was made."""
    addresses: list[int] = field(default_factory=list)
    """Of ``memory``, when it was made."""


class Gradient(NamedTuple):
    """That of a parameter before the call, as far as the call has left it."""

    parameter: Any
    was_there: bool
    tensor: Any


def record(
    function: Callable, args: tuple, named: dict[str, Any], others: tuple, facts: Facts, ignored: frozenset[str]
) -> tuple[Any, Tape | str]:
    """The result of a call, and its tape, or the reason that there is none. The call is made as it always is."""
    given = [leaf for leaf in leaves((args, named)) if not isinstance(leaf, (torch.Tensor, *PLAIN))]
    places = tuple(facts.places)
    with_places = left_values.given(args, places)
    try:
        watch = Watch(function, (*others, *given), facts, ignored)
        left_values.release(watch, places)
        obstacle = watch.obstacle()
        random_before = _random_of(watch)
    except Exception as failure:
        obstacle = _unseen(failure)
    if obstacle:
        return function(*args, **named), obstacle
    # who holds a gradient that the call takes away needs memory for one more
    held = [(each, None if each.grad is None else TensorWeakRef(each.grad)) for each in watch.parameters()]
    rates = [(source, source.value()) for optimizer in watch.optimizers for source in sources_of(optimizer)]
    inputs = tensors_in(with_places, named)
    held_before = Held(function, args, named)
    versions = [changes_of(each) for each in inputs]
    counts = [each for optimizer in watch.optimizers for each in optimizer_numbers.counts_of(optimizer)]
    recorder = Recorder(inputs, counts)
    with Trials(recorder, watch.optimizers) as trials, Outside(recorder), recorder, Calls(recorder) as calls:
        result = function(*args, **named)
    try:
        if recorder.obstacle:
            raise Unrecordable(recorder.obstacle)
        if changed := held_before.difference():
            raise Unrecordable(f"{changed}: {_RETURN_IT}")
        is_bare = _asks_for_attributes(watch, inputs)
        _require_known(watch, calls, facts)
        _require_pure(watch, rates, calls)
        left = left_values.found(watch, places, facts)
        for path, state in _random_of(watch).items():
            if random_before.get(path) != state:
                raise Unrecordable(f"it draws numbers from {path}: draw them with torch, or outside, and pass them")
        counted = [place for place, each in enumerate(inputs) if changes_of(each) != versions[place]]
        before = [Gradient(parameter, ref is not None, ref and ref()) for parameter, ref in held]
        tape = _tape(recorder, watch, before, (result, left), counted, *_numbers(recorder, trials))
        tape.arguments, tape.modes, tape.is_bare = arguments_of(function, args, named), modes(), is_bare
        tape.given = places
        return result, tape
    except Unrecordable as reason:
        return result, str(reason)
    except Exception as failure:
        return result, _unseen(failure)


def _unseen(failure: Exception) -> str:
    """Of an object that does not like to be looked at. The call is, or was, made all the same."""
    if is_of_memory(failure):
        return TOO_LITTLE
    return f"what it uses cannot be looked at ({type(failure).__name__}: {failure})"


def _random_of(watch: Watch) -> dict[str, Any]:
    """States of the generators that are not torch's."""
    found: dict[str, Any] = {"Python's random": random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found["numpy.random"] = repr(numpy.random.get_state(legacy=False))
    others = {path: each for each, path in watch.generators if not isinstance(each, torch.Generator)}
    return {**found, **{path: _state_of(each) for path, each in others.items()}}


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.SystemRandom):
        return None  # it has none; who draws from it is seen asking the system
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "get_state"):
        return repr(generator.get_state(legacy=False))
    return repr(getattr(generator, "bit_generator", generator).state)


def _require_known(watch: Watch, calls: Calls, facts: Facts) -> None:
    """All code that ran was looked at, and all objects that other code was given."""
    unknown = [code for code in calls.codes if code not in watch.codes]
    handed = [each for each in calls.handed.values() if not any(each is known for known in facts.handed)]
    facts.codes.update(unknown)
    facts.handed += handed
    if unknown:
        code = unknown[0]
        place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        raise Unrecordable(f"it runs {code.co_name} ({place}), to which none of its names leads")
    if handed:
        raise Unrecordable(f"it hands an object of class {type(handed[0]).__name__} to code of a package")


def _asks_for_attributes(watch: Watch, inputs: list[Any]) -> bool:
    """Whether code may ask for attributes of arguments that are not there."""
    for name in (name for each in inputs for name in fields_of(each)):
        if name in watch.names or watch.names & ASKING:
            raise Unrecordable(f"it may read an attribute of an argument ({name}): pass what is in it")
    return bool(watch.names & ASKING)


def _require_pure(watch: Watch, rates: list, calls: Calls) -> None:
    for source, value in rates:
        if source.value() != value:
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
    written = {number: tensor for number, tensor in outside.items() if address_of(tensor) in writes}
    inputs = list(zip(recorder.inputs, recorder.held_inputs))
    written_inputs = [place for place, (_, tensor) in enumerate(inputs) if address_of(tensor) in writes]
    changed = {address_of(tensor) for tensor in (*written.values(), *(inputs[place][1] for place in written_inputs))}
    # what other ranks were given cannot be taken back
    first = (
        place
        for place, each in enumerate(steps)
        if each.is_random or each.writes & changed or exchanges_at_once(each.operator)
    )
    first_write = min(first, default=len(steps))
    for each in steps[first_write:]:
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
            (parameter, was_there, gradient if _is_used(gradient, recorder) else None)
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
        watched=watch.bindings,
        template=template,
        left=tuple(left),
    )


def _with_constants(recorder: Recorder, kept: set[int]) -> list[Operation]:
    """The operations; a tensor made of numbers of Python is copied in each run only if that changes or returns it."""
    writes = {address for operation in recorder.operations for address in operation.writes}
    unneeded: list[Operation] = []
    for slot, (source, copy, made) in recorder.constants.items():
        if slot in kept or address_of(recorder.outside[slot]) in writes:
            del recorder.outside[slot]
            recorder.outside[source] = copy
        else:
            unneeded.append(made)
    return [each for each in recorder.operations if not any(each is other for other in unneeded)]


def _each_once(tensors: list[Any]) -> list[Any]:
    return [each for each in {id(each): each for each in tensors}.values() if is_ordinary(each)]


def _is_used(gradient: Any, recorder: Recorder) -> bool:
    return gradient is not None and any(tensor is gradient for tensor in recorder.outside.values())


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
    if isinstance(value, (*PLAIN, Item, Place)):
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
