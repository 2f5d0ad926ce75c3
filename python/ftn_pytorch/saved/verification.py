# SPDX-License-Identifier: MIT
"""Whether a file gives the numbers of its recordings: each runs once out of the file and once out of the script.

What the script has stays as it is: its recordings run on copies, with arguments made up.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError
from ..recording.arguments import Given
from ..recording.collectives import asks_ranks
from ..recording.comparison import is_same
from ..recording.operations import address_of
from ..recording.returned import filled, parts
from ..recording.tape import Tape
from ..system import extension
from . import saved_recording


def verify(
    path: str,
    functions: Mapping[str, list[Tape]],
    arrays: Mapping[str, Any],
    gradients: Mapping[int, list[str]],
) -> None:
    """HOOK for a file that gives other numbers. ``arrays``: the state by name; ``gradients``: names by parameter."""
    for name, tapes in functions.items():
        for tape in tapes:
            # ranks would wait for those that write no file
            if not asks_ranks(tape):
                _compare(path, name, tape, arrays, gradients)


def _compare(path: str, name: str, tape: Tape, arrays: Mapping[str, Any], gradients: Mapping[int, list[str]]) -> None:
    given, again = _examples(tape), _examples(tape)
    constants, state = _copied(tape, arrays)
    replay = extension.module().Replay(tuple(given), {}, dataclasses.replace(tape, constants=constants))
    try:
        with _as_before(tape):
            tensors = [each for each in given if isinstance(each, torch.Tensor)]
            results, made = replay.launch(tensors, [_number(each) for each in tape.numbers], False)
    except Exception:  # of an operator, which the arguments are no good for
        return
    tensors_there = [each for each in results if isinstance(each, torch.Tensor)]
    device = _device_among([*tensors_there, *(each for _, each in tape.constants)])
    saved = saved_recording.opened(path, "" if device.type == "cpu" else str(device), starts_generator=False)
    try:
        with _as_before(tape):
            result = saved.call(name, tuple(again), {})
    except FtnPytorchError as failure:
        if failure.status == "HOOK":  # a step that goes another way with the numbers of now
            return
        raise
    there = saved.arrays()
    pairs = [("a result", *pair) for pair in zip(parts(filled(tape.template, results)), parts(result))]
    pairs += [("an argument", *pair) for pair in zip(given, again)]
    pairs += [(each, tensor, there[each]) for each, tensor in state.items() if each in there]
    for (parameter, slot, _), gradient in zip(tape.gradients_after, made):
        pairs += [(each, gradient, there.get(each)) for each in gradients.get(id(parameter), ()) if slot >= 0]
    for what, one, other in pairs:
        if not is_same(one, other, 0):
            raise FtnPytorchError("HOOK", f"{name} gives other numbers out of the file than in the script: {what}")


def _copied(tape: Tape, arrays: Mapping[str, Any]) -> tuple[list[tuple[int, Any]], dict[str, Any]]:
    """The constants of a recording, and the arrays in their memory, which they share in the copies, too."""
    tensors = {each: tensor for each, tensor in arrays.items() if isinstance(tensor, torch.Tensor)}
    used = {address_of(tensor) for _, tensor in tape.constants}
    constants = [(slot, tensor.detach()) for slot, tensor in tape.constants]
    state = {each: tensor.detach() for each, tensor in tensors.items() if address_of(tensor) in used}
    return copy.deepcopy((constants, state))


def _examples(tape: Tape) -> list[Any]:
    """Arguments, the same each time; what is one tensor in the recording is one here."""
    generator = torch.Generator().manual_seed(1)
    slots = iter(tape.inputs)
    made: dict[int, Any] = {}
    return [
        each.value if each.dtype is None else made.setdefault(next(slots), _example(each, tape, generator))
        for each in tape.arguments
    ]


def _example(given: Given, tape: Tape, generator: Any) -> Any:
    """Between 0 and 1, which most functions take, or zeros, which most indices may be."""
    device = _device_among(each for _, each in tape.constants)
    made = torch.empty_strided(given.shape, given.strides, dtype=given.dtype, device=device).zero_()
    if made.is_floating_point() or made.is_complex():
        made.copy_(torch.rand(given.shape, generator=generator, dtype=torch.float64, device="cpu"))
    return made


def _device_among(tensors: Iterable[Any]) -> torch.device:
    return next((each.device for each in tensors if each.device.type != "cpu"), torch.device("cpu"))


def _as_before(tape: Tape) -> contextlib.AbstractContextManager:
    """Random numbers that a recording draws are drawn again."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    return torch.random.fork_rng(devices, enabled=tape.draws)


def _number(source: tuple) -> float:
    if len(source) == 2:
        return float(source[0]) + source[1]
    group, key, item = source
    return float(group[key] if item < 0 else group[key][item])
