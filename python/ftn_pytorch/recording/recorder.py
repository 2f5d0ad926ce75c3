# SPDX-License-Identifier: MIT
"""The recorder, which writes the calls of operators down while a function is called.

torch shows a mode of ``__torch_dispatch__`` every operator call below autograd and autocast, the backward pass and the
step of an optimizer among them. The recorder lets each call happen and notes it.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from ..errors import is_of_memory
from ..system import private_names, thread_recorder
from .operations import (
    ITEM,
    Operation,
    Slot,
    Taken,
    address_of,
    is_composite,
    is_ordinary,
    is_tried,
    place_of_user,
    slots_in,
    tensors_among,
    waits_for_ranks,
)
from .traced_numbers import EQUAL, LESS, LESS_EQUAL, Trace

_CLONE = torch.ops.aten.clone.default
_SET = (torch.ops.aten.set_.source_Storage, torch.ops.aten.set_.source_Storage_storage_offset)
_KEPT_BYTES = 64 << 20
_READ = ("cpu", "cuda")
_FOLDED = ("aten::detach", "aten::alias", "aten::lift_fresh")
_COMPARISONS = {"lt": LESS, "le": LESS_EQUAL, "eq": EQUAL}
_OPPOSITES = {"ge": "lt", "gt": "le", "ne": "eq"}

ALONE = threading.RLock()
"""Held by the thread that records, checks or captures: generators and streams of captures are those of a process."""

OF_MEMORY = "it uses the memory of a tensor as it is (untyped_storage, set_, copy.deepcopy, pickle)"
OF_NUMBER = (
    "a number is taken out of a tensor, and what follows may depend on it; leave it a tensor, and take the number "
    "outside of the recorded function"
)
OTHERS = "something else has changed what it uses, or has drawn random numbers, as where another thread trains"
"""Stands for what has shown nothing: another call will tell."""
TOO_LITTLE = "there is too little memory to record and to check it"


class Unrecordable(Exception):
    """The reason, a sentence without its end."""


def unseen(failure: Exception) -> str:
    """The reason, which may be an object that does not like to be looked at. The call is, or was, made all the same."""
    if isinstance(failure, Unrecordable):
        return str(failure)
    if is_of_memory(failure):
        return TOO_LITTLE
    return f"what it uses cannot be looked at ({type(failure).__name__}: {failure})"


class Recorder(private_names.dispatch_mode() or object):  # type: ignore[misc]
    """While it is entered, the calls of this thread are noted.

    ``obstacle`` says why what was noted is of no use, if it is. Nothing is raised: the call goes on as it is. Tensors
    that come from outside are held, others are not: autograd takes a gradient as it is if nobody else holds it, and
    copies it otherwise.
    """

    supports_higher_order_operators = True

    def __init__(self, inputs: Sequence[Any], counts: Iterable[Any] = (), with_values: bool = False) -> None:
        super().__init__()
        self.obstacle = ""
        self.operations: list[Operation] = []
        self.outside: dict[int, Any] = {}
        self.used_at: dict[int, str] = {}
        """Where each of them was first met, or put into the memory of others."""
        self.constants: dict[int, tuple[int, Any, Operation]] = {}
        """Those that were made of numbers of Python: slot and tensor of the original, and how it is copied."""
        self.derived: dict[int, Any] = {}
        """Those that show the memory of others, and are made once: what that holds later is seen, too."""
        self.turn = 0
        self.given: dict[int, int] = {}
        """Memory that operators were given, and in which turn the last time."""
        self.cleared: dict[int, int] = {}
        """How many operations there were when the gradient of a tensor, by its identity, was set to None."""
        self.generators: list[Any] = []
        self.is_paused = False
        self.suppressed = 0
        """How many ``contextlib.suppress`` are entered."""
        self.stepping: Any = None
        """The optimizer that makes a step."""
        self.trace: Trace | None = None
        """What that computes in Python."""
        self.counts: dict[int, tuple[Any, float]] = {}
        """Tensors, by their identity, out of which a step may read a number, and what is in them before the call."""
        self.note_counts(counts)
        self.reads: dict[int, int] = {}
        """Which of them was read into a slot."""
        self.values: list[Any] | None = [] if with_values else None
        """Copies of the results, as many as are kept."""
        self.branches: dict[tuple[int, int, float, bool], Any] = {}
        """Comparisons of a whole number in a tensor with another one, which Python has asked for: code,
        identity of the tensor, number, and how they came out."""
        self._comparisons: dict[int, tuple[int, Any, float, bool]] = {}
        """What was compared into a slot; the last one tells that its opposite was asked for."""
        self.taken: list[Taken] = []
        self.chain: Callable[[FrameType | None, Any], Any] = lambda frame, function: None
        """Tells the expressions that have led to where a number is taken."""
        self.called: Any = None
        """The function of C that code of the user has called last."""
        self._room = _KEPT_BYTES
        self.count = 0
        self._slots: Any = WeakIdKeyDictionary()
        self._folded: set[int] = set()
        self.kept: list[Any] = []
        """Tensors of this package that live on between calls: they need no name that leads to them."""
        self._told_before: list[Any] = []
        self.held_inputs = list(inputs)
        self.inputs = [self.slot_of(tensor, is_input=True) for tensor in inputs]

    def __enter__(self) -> Any:
        self._told_before.append(thread_recorder.begin(self))
        return super().__enter__()

    def __exit__(self, *failure: Any) -> Any:
        thread_recorder.end(self._told_before.pop())
        return super().__exit__(*failure)

    def note_counts(self, counts: Iterable[Any]) -> None:
        with self.paused():
            self.counts.update({id(each): (each, float(each)) for each in counts})

    def keep(self, tensor: Any) -> None:
        self.kept.append(tensor)

    def slot_of(self, tensor: Any, is_input: bool = False) -> int:
        if (known := self.known(tensor)) is not None:
            return known
        number = self._new(tensor)
        if not is_input:
            self.outside[number] = tensor
            self.used_at[number] = place_of_user()
        return number

    def note_constant(self, slot: int) -> None:
        """A tensor from outside that was made of numbers of Python just now: each run begins with these numbers."""
        with self.paused():
            copy = self.outside[slot].detach().clone()
        source = self._new(copy)
        arguments = [Slot(source), None]
        made = Operation(_CLONE, arguments, [[slot]], set(), place_of_user(), len(self.operations), copy.is_cpu, False)
        self.constants[slot] = (source, copy, made)
        self.operations.append(made)

    def known(self, tensor: Any) -> int | None:
        return self._slots.get(tensor)

    def _new(self, tensor: Any) -> int:
        if not is_ordinary(tensor):
            self.refuse(f"it uses a {'nested tensor' if tensor.is_nested else f'tensor of layout {tensor.layout}'}")
        number = self.count
        self.count += 1
        self._slots[tensor] = number
        return number

    @contextlib.contextmanager
    def aside(self) -> Iterator[list[Operation]]:
        """What is noted meanwhile goes into a list of its own."""
        kept, self.operations = self.operations, []
        try:
            yield self.operations
        finally:
            self.operations = kept

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What is called meanwhile is not noted."""
        before, self.is_paused = self.is_paused, True
        try:
            yield
        finally:
            self.is_paused = before

    def refuse(self, why: str) -> None:
        if not self.obstacle:
            self.obstacle = f"{place_of_user()}: {why}"

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not hasattr(operator, "decompose"):
            self.refuse(f"it calls {operator}, which is given functions")
        if self.obstacle or self.is_paused or operator.namespace == "profiler":
            return operator(*args, **kwargs)
        if is_composite(operator, (*args, *kwargs.values())):
            with self:
                return operator.decompose(*args, **kwargs)
        try:
            self._check(operator, types, args)
            is_empty = operator in _SET and args[0].numel() == 0 and not args[0].requires_grad
            if is_empty and self._slots.get(args[0]) not in self._shared():
                # cuDNN wants all weights of an LSTM as one tensor, and torch puts that into their memory in each call
                return self._place(operator(*args, **kwargs))
            arguments, written = self._encode(operator, args, kwargs)
            inputs = {address_of(each) for each in tensors_among((*args, *kwargs.values()))}
            self.turn += 1
            self.given.update(dict.fromkeys(inputs, self.turn))
        except Exception as failure:  # of what is not foreseen; the call goes on
            self.refuse(f"{operator} cannot be noted ({failure})")
            return operator(*args, **kwargs)
        result = operator(*args, **kwargs)
        try:
            self._note(operator, args, arguments, written, inputs, result)
        except Exception as failure:
            self.refuse(f"{operator} cannot be noted ({failure})")
        return result

    def _note(
        self, operator: Any, args: Any, arguments: list[Any], written: list[Any], inputs: set[int], result: Any
    ) -> None:
        writes = {address_of(tensor) for tensor in written}
        name = private_names.schema_of(operator).name
        inner = arguments[0] if arguments else None
        if name in _FOLDED and isinstance(inner, Slot):
            self._slots[result] = inner.number
            self._folded.add(inner.number)
            return
        if self._is_comparison(operator, args):
            code, tensor, number, is_opposite = self._comparisons[self._slots[args[0]]]
            self.branches[code, id(tensor), number, bool(result) != is_opposite] = tensor
            return
        if operator is ITEM and not self._is_count(operator, args):
            self._require(args[0], result)
            return
        if torch.Tag.inplace_view in operator.tags and isinstance(inner, Slot) and inner.number in self._shared():
            self.refuse(f"the shape of a tensor is changed in place ({operator})")
        if writes or not self._derive(arguments, result):
            made = Operation(operator, arguments, self._results(result), writes, place_of_user(), len(self.operations))
            made.changed = [self.slot_of(each) for each in written]
            made.is_tried = self.suppressed > 0 or is_tried()
            made.on_host = any(each.is_cpu for each in (*tensors_among([result]), *written))
            if waits_for_ranks(operator):
                made.received = result.detach().clone()
            if operator is ITEM:
                made.results, made.on_host = [[self.count]], True
                self.reads[self.count] = id(args[0])
                self.count += 1
            if isinstance(result, torch.Tensor):
                made.makes_memory = result.is_floating_point() and address_of(result) not in inputs
            self._note_comparison(operator, arguments, made.results)
            self.operations.append(made)
            if self.values is not None:
                self._room -= sum(each.nbytes for each in tensors_among([result]))
                self.values.append(copies_of(result) if self._room >= 0 else [])

    def _check(self, operator: Any, types: Any, args: Any) -> None:
        strange = [each for each in types if each not in (torch.Tensor, torch.nn.Parameter)]
        if strange:
            self.refuse(f"it uses tensors of the class {strange[0].__name__}")
        tags = operator.tags
        if operator.namespace == "c10d":
            self.refuse(f"it waits for other ranks in {operator}; ftn_pytorch.average_gradients can be recorded")
        if torch.Tag.data_dependent_output in tags and not (
            self._is_count(operator, args)
            or self._is_comparison(operator, args)
            or (
                operator is ITEM and self.stepping is None and not args[0].is_complex() and args[0].device.type in _READ
            )
        ):
            self.refuse(self.of_number(operator))
        if torch.Tag.dynamic_output_shape in tags and not _has_whole_indices(operator, args):
            self.refuse(f"the shape of a result depends on numbers in tensors ({operator}): use torch.where")

    def _is_count(self, operator: Any, args: Any) -> bool:
        is_step = self.trace is not None or self.values is not None
        return is_step and operator is ITEM and id(args[0]) in self.counts

    def _is_comparison(self, operator: Any, args: Any) -> bool:
        return operator is ITEM and self._slots.get(args[0]) in self._comparisons

    def _require(self, tensor: Any, value: Any) -> None:
        """A number was taken out of a tensor: a run goes on only where it is the same one there, bit for bit. Or it
        reads another one out of a copy, if it is found to be free."""
        if value != value:
            self.refuse(self.of_number(ITEM))
            return
        begin = len(self.operations)
        with self:
            copy = tensor.clone()
            is_same = tensor == value
            if value == 0 and tensor.is_floating_point():
                is_negative = tensor.signbit()
                is_same = is_same.logical_and(is_negative if math.copysign(1, value) < 0 else is_negative.logical_not())
            private_names.assert_later(is_same, "a number in a tensor is another one")
        if not self.obstacle:
            self.operations[-1].is_required = self.operations[-1].on_host = True
            self.taken.append(Taken(self.slot_of(copy), self.operations[begin], self.operations[begin + 1 :]))

    def note_number(self, number: Any, frame: FrameType | None, function: Any) -> None:
        """The newest of them is this one, which the code of a frame has asked for by a function."""
        self.taken[-1].value = number
        self.taken[-1].steps = self.chain(frame, function)

    def _note_comparison(self, operator: Any, arguments: list[Any], results: list[list[int]]) -> None:
        """Of a tensor that is as it was before the call: the next call can make it before it runs."""
        name = str(operator).removeprefix("aten.").removesuffix(".Scalar")
        if (code := _COMPARISONS.get(_OPPOSITES.get(name, name))) is None:
            return
        tensor = self.outside.get(arguments[0].number)
        if tensor is None or tensor.ndim > 0 or tensor.is_floating_point():
            return
        if type(arguments[1]) is int and not any(address_of(tensor) in each.writes for each in self.operations):
            self._comparisons[results[0][0]] = (code, tensor, float(arguments[1]), name in _OPPOSITES)

    def of_number(self, operator: Any) -> str:
        if self.stepping is None:
            return OF_NUMBER.replace(",", f" ({operator}),", 1)
        kind = type(self.stepping)
        cure = "; make it with fused=True" if "fused" in inspect.signature(kind).parameters else ""
        return f"the step of {kind.__name__} takes numbers out of its state{cure}"

    def _encode(self, operator: Any, args: Any, kwargs: Any) -> tuple[list[Any], list[Any]]:
        """Arguments in the order of the schema, and the tensors that are written."""
        found: list[Any] = []
        written: list[Any] = []
        for place, declared in enumerate(private_names.schema_of(operator).arguments):
            value = args[place] if place < len(args) else kwargs.get(declared.name, declared.default_value)
            found.append(self._encoded(value))
            is_written = declared.alias_info is not None and declared.alias_info.is_write
            if is_written or (declared.name in ("running_mean", "running_var") and "batch_norm" in str(operator)):
                # the schema of batch normalisations does not tell
                written += tensors_among([value])
        return found, written

    def _encoded(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return Slot(self.slot_of(value))
        if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
            return [None if item is None else Slot(self.slot_of(item)) for item in value]
        if isinstance(value, torch.Generator) and value not in self.generators:
            self.generators.append(value)
        if isinstance(value, (torch.UntypedStorage, torch.TypedStorage)):
            self.refuse(OF_MEMORY)
        return value

    def _shared(self) -> set[int | None]:
        """Slots that may stand for several tensors, which have shapes of their own, or for one of somebody else."""
        return {None, *self._folded, *self.inputs, *self.outside, *self.derived}

    def _place(self, tensor: Any) -> Any:
        del self._slots[tensor]
        number = self._new(tensor)
        self.derived[number], self.used_at[number] = torch.ops.aten.detach(tensor), place_of_user()
        return tensor

    def _derive(self, arguments: list[Any], result: Any) -> bool:
        """Views of what comes from outside are made once; they show what that holds later, too."""
        slots = list(slots_in(arguments))
        if not slots or not isinstance(result, torch.Tensor) or self._slots.get(result) is not None:
            return False
        sources = [self.outside.get(slot, self.derived.get(slot)) for slot in slots]
        if any(source is None for source in sources) or self.constants.keys() & slots:
            return False
        if address_of(result) != address_of(sources[0]) or result.numel() == 0:
            return False
        number = self._new(result)
        self.derived[number] = torch.ops.aten.detach(result)
        return True

    def _results(self, result: Any) -> list[list[int]]:
        def slot_of(each: Any) -> int:
            return self._new(each) if isinstance(each, torch.Tensor) and self.known(each) is None else -1

        whole = result if isinstance(result, tuple) else () if result is None else (result,)
        return [list(map(slot_of, each if isinstance(each, (list, tuple)) else [each])) for each in whole]


def copies_of(result: Any) -> list[Any]:
    """Of what an operator gives; None for what is no tensor."""
    whole = result if isinstance(result, (list, tuple)) else [result]
    return [each.detach().clone() if isinstance(each, torch.Tensor) else None for each in whole]


def _has_whole_indices(operator: Any, args: Any) -> bool:
    """True for x[i] with integers in i: the shape is that of i, other than with a mask."""
    return operator is torch.ops.aten.index.Tensor and all(
        each is None or each.dtype not in (torch.bool, torch.uint8) for each in args[1]
    )
