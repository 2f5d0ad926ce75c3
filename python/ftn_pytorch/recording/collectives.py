# SPDX-License-Identifier: MIT
"""Recordings with an operation of all ranks inside, compared without it.

A call that is made both ways would make the operation twice, where the other ranks make it once. So what it gave in the
function is what it gives in the recording, too.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from .operations import Operation, Slot, exchanges_at_once, is_of_ranks, waits_for_ranks
from .tape import Tape


class Compared:
    """A tape in which copies of tensors that are received take the place of operations of all ranks."""

    def __init__(self, tape: Tape) -> None:
        self.replay: Any = None
        steps, constants = list(tape.steps), list(tape.constants)
        makers = {slots[0]: place for place, step in enumerate(steps) for slots in step.results if len(slots) == 1}
        self._received: list[tuple[int, Any]] = []
        """Number of each operation that waits, and the tensor that takes what it gave."""
        for place, step in enumerate(steps):
            if waits_for_ranks(step.operator):
                slot, tensor = tape.slots + len(self._received), torch.empty_like(step.received)
                self._received.append((step.number, tensor))
                constants.append((slot, tensor))
                if exchanges_at_once(step.operator):
                    steps[place] = _instead(step, torch.ops.aten.clone.default, [Slot(slot), None])
                    continue
                maker = makers[step.arguments[0].number]
                steps[maker] = _instead(steps[maker], torch.ops.aten.clone.default, [Slot(slot), None])
                steps[place] = _instead(step, torch.ops.aten.alias.default, step.arguments)
        if any(is_of_ranks(step.operator) for step in steps):
            raise ValueError("it does not wait for what other ranks give")
        slots = tape.slots + len(self._received)
        self.tape = dataclasses.replace(tape, slots=slots, constants=constants, steps=steps)

    def receive(self, operations: list[Operation]) -> None:
        """Take what the operations of a call gave; what is no longer called leaves what was there before."""
        for number, tensor in self._received:
            given = operations[number].received if number < len(operations) else None
            if given is not None and given.shape == tensor.shape:
                tensor.copy_(given)


def asks_ranks(tape: Tape) -> bool:
    """True for a recording that exchanges something with other ranks."""
    return any(is_of_ranks(step.operator) for step in tape.steps)


def _instead(step: Operation, operator: Any, arguments: list[Any]) -> Operation:
    return dataclasses.replace(step, operator=operator, arguments=arguments, label=step.name)
