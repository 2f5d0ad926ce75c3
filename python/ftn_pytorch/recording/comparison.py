# SPDX-License-Identifier: MIT
"""One call made twice, as it is and from its recording, with the same numbers before and compared after."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..errors import is_of_memory
from ..system import extension, other_threads, private_names
from ..system.tensor_bytes import bytes_of
from .arguments import Call, tensors_in
from .left_values import given
from .memory_spans import Spans, span_of
from .operations import Operation, only_makes_memory
from .recorder import OTHERS, TOO_LITTLE, Recorder, copies_of
from .returned import filled, parts
from .tape import Tape
from .tensor_effects import Outside
from .variant import Variant

_TRIES = 3
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}
"""As what elements are compared, by their size."""


class State:
    """All that a recording changes: tensors from outside, or rows of them, gradients. What it only reads belongs to
    others, who may write it meanwhile: to put that back would undo what they have done. Nor are generators of random
    numbers put back, from which others have drawn: runs begin at their states (``random``)."""

    def __init__(self, tape: Tape, inputs: list[Any]) -> None:
        self.tensors = [*tape.parts] + [inputs[place] for place in tape.written_inputs]
        self.copies = [tensor.detach().clone() for tensor in self.tensors]
        self.gradients = [(parameter, parameter.grad) for parameter, _, _ in tape.gradients_after]
        self.places = [(place, place.now()) for place, _ in tape.left]
        self.generators = list(tape.generators)
        if tape.draws:
            self.generators.append(torch.default_generator)
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                self.generators += torch.cuda.default_generators
        self.random = [generator.get_state() for generator in self.generators]

    def restore(self) -> None:
        # Writing is not possible everywhere: only what the call has changed is written again. Nor does it count for
        # autograd, which may have counted the change at another tensor of this memory.
        for tensor, copy in zip(self.tensors, self.copies):
            if _has_changed(tensor, copy):
                tensor.data.copy_(copy)
        for parameter, gradient in self.gradients:
            parameter.grad = gradient
        for place, value in self.places:
            place.back(value)

    def numbers(self) -> Iterator[tuple[str, Any, Any]]:
        """As they were, and as they are now."""
        for place, (copy, tensor) in enumerate(zip(self.copies, self.tensors)):
            yield f"tensor {place + 1} of those that it changes", copy, tensor
        for place, (parameter, gradient) in enumerate(self.gradients):
            yield f"gradient {place + 1}", gradient, parameter.grad


class Surroundings:
    """What a recording reads and does not change."""

    def __init__(self, tape: Tape, state: State, inputs: list[Any]) -> None:
        written, read = Spans(state.tensors), (*(tensor for (tensor,) in tape.memory), *inputs)
        self._tensors = [each for each in read if not written.meet(*span_of(each))]
        self._copies = [tensor.detach().clone() for tensor in self._tensors]
        own = {id(parameter) for parameter, _ in state.gradients}
        others = [parameter for parameter, _, _ in tape.gradients_before if id(parameter) not in own]
        self._gradients = [(parameter, parameter.grad) for parameter in others]

    def have_changed(self) -> bool:
        return any(map(_has_changed, self._tensors, self._copies)) or any(
            parameter.grad is not gradient for parameter, gradient in self._gradients
        )


def both_ways(call: Call, variant: Variant, tolerance: float) -> tuple[Any, str | None]:
    """The result, and in what the two differ: empty if in nothing, None if the recording does not hold here.
    ``OTHERS``: nothing is known, and another call will tell. NotImplemented: the call has still to be made, for
    which the copies for the comparison left too little memory.

    After a doubt a recorder looks on, and tells which operation differs. Torch may compute otherwise then: the fast
    path of transformers, singular values, gradients of ``max``.
    """
    exchanged = variant.compared
    tape, replay, runner = variant.tape, variant.replay, variant.runner
    if exchanged is not None:
        tape, replay, runner = exchanged.tape, exchanged.replay, exchanged.replay
    assert tape is not None
    try:
        args = given(call.args, tape.given)
        inputs = tensors_in(args, call.named)
        before = State(tape, inputs)
        around = Surroundings(tape, before, inputs)
    except Exception as failure:
        return NotImplemented, _told(failure)
    # A function that gives other numbers may count or draw them in Python, so there is one call of it, not a second
    # one that looks for the reason.
    recorder = Recorder(inputs, tape.counts, with_values=True) if variant.doubt or exchanged else None
    try:
        with contextlib.ExitStack() as stack:
            for each in () if recorder is None else (Outside(recorder), recorder):
                stack.enter_context(each)
            result = call.function(*call.args, **call.named)
    except Exception as failure:
        if not is_of_memory(failure):
            raise
        before.restore()
        if not other_threads.there_are():
            for generator, state in zip(before.generators, before.random):
                # in vain, it would reset what cuDNN has drawn for its dropout
                if not torch.equal(generator.get_state(), state):
                    generator.set_state(state)
        return NotImplemented, TOO_LITTLE
    if recorder is not None and recorder.obstacle:
        return result, recorder.obstacle
    if around.have_changed():  # by others, or by an operator that does not tell, which would do it once more
        return result, OTHERS
    try:
        after = State(tape, inputs)
    except Exception as failure:
        return result, _told(failure)
    before.restore()
    # a graph is launched by a function of Python, in which others may draw
    is_alone = not tape.draws or not other_threads.there_are()
    again = functools.partial(extension.module().run_from, before.generators, before.random, after.random)
    try:
        if recorder is None:
            before.gradients.clear()  # who holds a gradient that a graph has made lets the graph copy all of them
        elif exchanged is not None:
            exchanged.receive(recorder.operations)
        found, has_drawn_the_same = again((runner if is_alone else replay).run, args, call.named)
        if found is NotImplemented:
            kind, place = replay.why()
            fails = kind == "failure" and not tape.number_required_at(place)
            return result, "an operation fails in the recording" if fails else None
        found, left = filled((tape.template, [value for _, value in tape.left]), found)
        expected = [(place, place.expected(old, value)) for (place, old), value in zip(before.places, left)]
        if around.have_changed() or not has_drawn_the_same:
            return result, OTHERS
        differs = functools.partial(difference_of, after, result)
        difference = differs((found, compared(expected)), tolerance, variant.largest)
        is_of_names = difference and not differs((found, compared(after.places)), tolerance, variant.largest)
        # which other threads may use, too
        if is_of_names and other_threads.there_are() and variant.has_excuse():
            return result, OTHERS
        if difference and recorder is not None and is_alone:
            before.restore()
            fresh = extension.module().Replay(args, call.named, tape)
            numbers = fresh.given(args, call.named)[1]
            with (first := _FirstDifference(tape, recorder, tolerance)):
                again(fresh.launch, inputs, numbers, False)
            difference = f"{first.found}{difference}"
    except Exception as failure:
        return result, _told(failure)
    finally:
        after.restore()
    return result, difference


def compared(places: list[tuple[Any, Any]]) -> list[Any]:
    """What is left in places, without what no run has to leave alike."""
    return [value for place, value in places if place.is_compared]


def difference_of(
    after: State,
    result: Any,
    found: Any,
    tolerance: float,
    largest: dict[int, float] | None,
    origin: str = "the recording",
) -> str:
    """In what two runs differ, empty if in nothing. after, result: of the first; found: what the second, which comes
    from ``origin``, has returned and left. What both change is as the second one has left it. largest: of each of these
    in former comparisons, which a tolerance refers to: a loss near zero has no digits of its own."""
    names = ["a result", *(place.path for place, _ in after.places if place.is_compared)]
    whole = zip(names, [result, *compared(after.places)], [found[0], *found[1]])
    both = ((name, itertools.zip_longest(parts(a), parts(b), fillvalue="nothing")) for name, a, b in whole)
    pairs = [(name, *pair) for name, some in both for pair in some]
    for place, (name, value, again) in enumerate((*pairs, *after.numbers())):
        if largest is not None:
            largest[place] = max(largest.get(place, 0.0), _size(value))
        if not is_same(value, again, tolerance, 0.0 if largest is None else largest[place]):
            return f"{name} is {_unlike(value, again, origin)}"
    return ""


def _size(value: Any) -> float:
    """The largest of numbers; 0 where one is not finite."""
    if isinstance(value, torch.Tensor):
        try:
            value = float(value.detach().abs().max())
        except RuntimeError:  # there is none, or torch cannot tell of this kind of tensor
            return 0.0
    return abs(value) if type(value) is float and math.isfinite(value) else 0.0


class _FirstDifference(private_names.dispatch_mode() or object):  # type: ignore[misc]
    """Entered around a run of a recording, ``found`` tells the first operation that is another one than in the
    function, or gives something else: "mse_loss (model.py:7) gives ...; "."""

    def __init__(self, tape: Tape, recorder: Recorder, tolerance: float) -> None:
        super().__init__()
        self.found = ""
        self._steps, self._recorder, self._tolerance = iter(tape.steps), recorder, tolerance
        # an operator may leave a result as it finds the memory, where nobody is to use it
        self._used = {-1, *tape.results, *(slot for _, slot, _ in tape.gradients_after)}
        self._used.update(slot for step in tape.steps for slot in step.slots())

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        run = functools.partial(operator, *args, **(kwargs or {}))
        result = run()
        self.found = self.found or self._difference(next(self._steps), copies_of(result), run)
        return result

    def _difference(self, step: Operation, outcome: list[Any], run: Callable[[], Any]) -> str:
        operations, values, number = self._recorder.operations, self._recorder.values or [], step.number
        # what nobody needs was left out of the recording
        if number >= len(values) or operations[number].name != step.name:
            return f"{step.name} ({step.place}) is no longer called; "
        slots = itertools.chain(*step.results)
        used = [slot in self._used and one is not None for slot, one in zip(slots, values[number])]
        value, outcome = (list(itertools.compress(each, used)) for each in (values[number], outcome))
        pairs = [pair for pair in zip(value, outcome) if not is_same(*pair, self._tolerance)]
        if not pairs or only_makes_memory(step.operator):
            return ""
        is_repeatable = not step.writes and not step.is_random
        again = [itertools.compress(copies_of(run()), used) for _ in range(_TRIES if is_repeatable else 0)]
        if not all(is_same(one, two, 0) for each in again for one, two in zip(outcome, each)):
            return (
                f"{step.name} ({step.place}) gives other numbers each time that it is given the same, as what adds up "
                "in no fixed order does: allow for that with recorded(tolerance=...); "
            )
        return f"{step.name} ({step.place}) gives {_unlike(*pairs[0])}; "


def is_same(value: Any, other: Any, tolerance: float, largest: float = 0.0) -> bool:
    """Bit for bit, or up to a tolerance that is relative to the largest value, also of former ones."""
    if type(value) is float and type(other) is float:
        return value.hex() == other.hex() or math.isclose(value, other, rel_tol=tolerance, abs_tol=tolerance * largest)
    if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
        return value is other or value == other
    if value.dtype != other.dtype or value.shape != other.shape:
        return False
    bits = _BITS.get(value.element_size(), torch.uint8)
    if torch.equal(bytes_of(value, bits), bytes_of(other, bits)):
        return True
    if tolerance == 0 or not (value.is_floating_point() or value.is_complex()):
        return False
    one, two = value.detach(), other.detach()
    size = max(largest, float(one.abs().max()))
    return bool(torch.allclose(one, two, rtol=0, atol=tolerance * size, equal_nan=True))


def _has_changed(tensor: Any, copy: Any) -> bool:
    try:
        return not is_same(tensor, copy, 0)
    except RuntimeError:  # too little memory to compare
        return True


def _told(failure: Exception) -> str:
    return TOO_LITTLE if is_of_memory(failure) else f"the recording fails: {str(failure).partition(chr(10))[0]}"


def _unlike(value: Any, other: Any, origin: str = "the recording") -> str:
    """Two values, and how far tensors are from each other, where that can be said."""
    text = f"{_shown(value)}, and {_shown(other)} from {origin}"
    tensors = [each for each in (value, other) if isinstance(each, torch.Tensor)]
    if len(tensors) < 2 or value.shape != other.shape or value.numel() < 2 or not value.is_floating_point():
        return text
    return f"{text} (they differ by up to {float((value - other).detach().abs().max()):.3g})"


def _shown(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    first = value.detach().reshape(-1)[:1].tolist()
    return f"{first[0]!r}" if value.numel() == 1 else f"{list(value.shape)} beginning with {first}"
