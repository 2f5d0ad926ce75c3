# SPDX-License-Identifier: MIT
"""The tape of a call: what is there before it, its operators, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from ..system import private_names
from .arguments import Given
from .binding import SLOT, Binding
from .operations import Operation, Slot, place_of_waiting
from .places import Guard, Place
from .recorder import OF_NUMBER
from .traced_numbers import Branch, Number, formula_of

Described = tuple[str, str, list[tuple[str, Any]], list[list[int]]]


@dataclass
class Tape:
    """What src/recording/module.cpp needs to make the call again. Tensors stand in tuples of one."""

    slots: int
    inputs: list[int]
    """Slot of each tensor among the arguments."""
    constants: list[tuple[int, Any]]
    """Tensors that are there before a call, and views of such."""
    steps: list[Operation] = field(repr=False)
    first_write: int
    """Before that operation a failed run has changed nothing and drawn no random number."""
    results: list[int]
    bindings: list[Binding]
    numbers: list[tuple]
    """Those of optimizers, which each call reads."""
    branches: list[Branch]
    gradients_before: list[tuple[Any, bool, Any]]
    """Parameter, whether it has a gradient before the call, and that gradient if it is read or added to."""
    gradients_after: list[tuple[Any, int, int]]
    """Parameter and slot of its new gradient; -1 for none. The operation before which the old one is taken away."""
    memory: list[tuple[Any]]
    """Tensors that are there before a call: those that an operator uses, and those that names lead to."""
    addresses: list[int]
    """Of ``memory``, when the tape was made."""
    written: list[tuple[Any]]
    parts: list[Any]
    """Of these, what an operator is given to write: a row, where it is not all of a table."""
    written_inputs: list[int]
    """Places of those whose memory is written, through whichever tensor."""
    counted_inputs: list[int]
    """Places of those whose version counts that."""
    enters_inference: bool
    """All of it is in inference mode, which its caller is not in."""
    counts: list[Any]
    """Tensors out of which a step of an optimizer reads numbers."""
    fixed: set[int]
    """Slots of tensors that were made of numbers, which nobody changes."""
    generators: list[Any]
    rewinds: bool
    """A failed run has drawn random numbers of the host, which are to be drawn again."""
    casts: bool
    """It casts what names lead to, which an autocast around it may keep."""
    asks_switches: bool
    """The function may ask torch how it computes, and depends on all of that."""
    is_bare: bool
    """Tensors among the arguments must have no attributes, for which the function may ask."""
    template: Any
    """The result, with an ``Item`` for each tensor."""
    given: tuple[Place, ...]
    """What is there is given to a run behind its arguments."""
    left: list[tuple[Any, Any]]
    """What a run puts where, as a template: targets, and values."""
    guards: list[Guard]
    """What must hold before a run."""
    arguments: list[Given]
    modes: tuple
    """Those of torch in which it was made, as the extension tells them."""
    gives_modes: list[Any]
    """Networks to which it gives a mode, maybe the one that they had."""
    default_type: Any = field(default_factory=torch.get_default_dtype)

    @property
    def draws(self) -> bool:
        """Whether a run draws random numbers."""
        return any(each.is_random for each in self.steps)

    @property
    def operations(self) -> list[Described]:
        """The steps as ``operation_of`` in src/recording/description.cpp takes them."""
        after = (slot for _, slot, _ in self.gradients_after)
        needed = {*self.results, *after, *self.inputs, *(slot for slot, _ in self.constants)}
        described = []
        for each in reversed(self.steps):
            slots = set(each.slots())
            described.append(_described(each, slots - needed))
            needed |= slots
        return described[::-1]

    def gradients_read(self) -> list[Place]:
        """Those that are there before a call and that it reads or adds to."""
        used = (parameter for parameter, _, gradient in self.gradients_before if gradient is not None)
        return [Place(SLOT, parameter, "grad", "a gradient") for parameter in used]

    def number_required_at(self, place: int) -> str:
        """What to say where an operation fails in many calls because a number is another one; empty if it is another
        operation."""
        return f"{self.steps[place].place}: {OF_NUMBER}" if self.steps[place].is_required else ""


def _described(operation: Operation, last: set[int]) -> Described:
    """Name, overload, arguments and results. ``last``: slots that nobody needs afterwards."""
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
