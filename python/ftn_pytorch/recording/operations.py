# SPDX-License-Identifier: MIT
"""A call of a function as a list of operator calls, and what is left out of it or done in place."""

from __future__ import annotations

import dis
import functools
import inspect
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any

import torch

from ..system import private_names
from ..values import user_objects
from .traced_numbers import Number

ITEM = torch.ops.aten._local_scalar_dense.default
OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep  # as code objects have it, even with ".." in it
RECORDING = os.path.join(OWN, "recording", "recorded_call.py")
_TORCH = os.path.dirname(torch.__file__) + os.sep
# what they read goes into texts for people
FOR_PEOPLE = ("logging", "warnings", "linecache", "traceback", "tqdm", "matplotlib")
_ACTIVATIONS = ("aten::relu", "aten::sigmoid", "aten::tanh")
_MOVES = ("aten._to_copy.default", "aten.copy_.default")


@dataclass(frozen=True)
class Slot:
    """Stands for a tensor of a recording."""

    number: int


@dataclass
class Operation:
    """One call of an operator."""

    operator: Any
    arguments: list[Any]
    """In the order of the schema, all of them; tensors are slots."""
    results: list[list[int]]
    """The slots of each result, several for a list of tensors; -1 for what is no new tensor."""
    writes: set[int]
    """Storages that it changes in place."""
    place: str
    """File and line of the user's code."""
    number: int = 0
    """Place among all operations of the call."""
    on_host: bool = False
    """It makes or writes a tensor in host memory."""
    makes_memory: bool = False
    """The result, one tensor of floating point numbers, shares its memory with nothing that was there before."""
    is_tried: bool = False
    """Code of the user catches its failure."""
    is_required: bool = False
    """It fails where a number is not the one with which the function went its way."""
    in_inference: bool = field(default_factory=torch.is_inference_mode_enabled)
    """It was called in inference mode."""
    label: str = ""
    received: Any = None
    """Copy of what other ranks gave, where it waits for them."""
    changed: list[int] = field(default_factory=list)
    """Slots of the tensors that it changes in place."""

    @property
    def name(self) -> str:
        """As the function called it."""
        return self.label or str(self.operator).removesuffix(".default")

    @property
    def is_random(self) -> bool:
        return torch.Tag.nondeterministic_seeded in self.operator.tags

    def slots(self) -> Iterator[int]:
        """Slots that it reads, or writes in place."""
        yield from slots_in(self.arguments)


def slots_in(arguments: list[Any]) -> Iterator[int]:
    for argument in arguments:
        for item in argument if isinstance(argument, list) else (argument,):
            if isinstance(item, Slot):
                yield item.number
            elif isinstance(item, Number):
                yield from item.slots()


@dataclass
class Taken:
    """A number that was taken out of a tensor."""

    slot: int
    """Of the copy."""
    copy: Operation
    tests: list[Operation]
    value: Any = None
    """A float, which is no other object; None for what nobody but a function of C has seen."""
    steps: Any = None
    """Where code of the user takes it, see ``following``."""
    is_free: bool = False
    """Nothing depends on it."""
    sums: list[Any] = field(default_factory=list)
    """Statements that add it to a number in a name."""


def is_ordinary(tensor: Any) -> bool:
    """True for a tensor that has strides."""
    return tensor.layout == torch.strided and not tensor.is_nested


_LAYERS = ("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu")
"""They round otherwise where a mode sees what they call, and read lengths of sequences: as a whole, in each run."""


def tensors_among(values: Iterable[Any]) -> Iterator[Any]:
    """Tensors that are arguments or results of an operator, also in lists."""
    for value in values:
        several = value if isinstance(value, (list, tuple)) else (value,)
        yield from (each for each in several if isinstance(each, torch.Tensor))


def is_composite(operator: Any, arguments: Iterable[Any]) -> bool:
    """Whether torch calls other operators in its place: for ordinary tensors before a mode sees them, for those of
    inference mode after that."""
    # what tensors of own classes are asked for, such as their layout, is no operator of the dispatcher
    if operator.namespace == "prim" or not private_names.has_kernel(operator, "CompositeImplicitAutograd"):
        return False
    if private_names.schema_of(operator).name in _LAYERS:
        return False
    is_of_gpu = any(each.is_cuda for each in tensors_among(arguments))
    return not private_names.has_kernel(operator, "CUDA" if is_of_gpu else "CPU")


def is_of_ranks(operator: Any) -> bool:
    """True for an operation that all ranks make together, and for the one that waits for it."""
    return operator.namespace == "_c10d_functional" or exchanges_at_once(operator)


def exchanges_at_once(operator: Any) -> bool:
    """True for what waits for the ranks by itself, and counts its calls: others would count differently without it."""
    return str(operator).startswith(("ftn_pytorch.all_reduce_mean", "ftn_pytorch.exchange_rows"))


def waits_for_ranks(operator: Any) -> bool:
    return is_of_ranks(operator) and ("wait_tensor" in str(operator) or exchanges_at_once(operator))


def address_of(tensor: Any) -> int:
    """Of the storage, which views share; 0 where there is none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def parameters_of(value: Any) -> list[Any]:
    """A tensor that is a leaf of autograd, or those of a network itself, or of an optimizer."""
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad and value.is_leaf else []
    if isinstance(value, torch.nn.Module):
        return list(value.parameters(recurse=False))
    return [p for group in value.param_groups for p in group["params"]]


def is_move(operator: Any) -> bool:
    """True for a copy, which may be one from the host to a device."""
    return str(operator) in _MOVES


def only_makes_memory(operator: Any) -> bool:
    """True for what gives memory that nobody has written, such as ``empty_like``."""
    return "empty" in private_names.schema_of(operator).name


def place_of_waiting(operator: Any) -> int:
    """Which argument tells a copy not to wait for its end; -1 where there is none."""
    names = [each.name for each in private_names.schema_of(operator).arguments] if is_move(operator) else []
    return names.index("non_blocking") if names else -1


def is_of_library(file: str) -> bool:
    """True for code of torch and of this package."""
    return file.startswith((_TORCH, OWN))


def is_of_user(frame: FrameType) -> bool:
    """True for code of a script and of modules of the user."""
    return _is_own(frame.f_globals.get("__name__", ""), frame.f_code.co_filename)


def is_of_package(frame: FrameType) -> bool:
    """True for code of a package that a user has installed, other than what writes texts for people."""
    name = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] not in FOR_PEOPLE and user_objects.is_of_package(name)


@functools.lru_cache(maxsize=1000)
def _is_own(module: str, file: str) -> bool:
    # what makes named tuples has a module of its own
    is_plain = not is_of_library(file) and not module.startswith("namedtuple_")
    return is_plain and user_objects.is_own_module(module)


def callers(frame: FrameType | None, end: str = "") -> Iterator[FrameType]:
    """A frame and those around it, up to one of the file ``end``."""
    while frame is not None and frame.f_code.co_filename != end:
        yield frame
        frame = frame.f_back


def place_of_user() -> str:
    """File and line of the innermost code that belongs neither to torch nor to this package."""
    for frame in callers(inspect.currentframe()):
        file = frame.f_code.co_filename
        if not is_of_library(file) and not file.startswith("<"):
            return f"{os.path.basename(file)}:{frame.f_lineno}"
    return "the recorded function"


def is_tried() -> bool:
    """True where code of the user, in the function that is recorded, has a handler for what fails now."""
    return any(
        is_of_user(frame) and any(begin <= frame.f_lasti < end for begin, end in tried_in(frame.f_code))
        for frame in callers(inspect.currentframe(), RECORDING)
    )


@functools.lru_cache(maxsize=1000)
def tried_in(code: CodeType) -> list[tuple[int, int]]:
    """Where a code object has handlers: those of ``except`` and ``finally``, not of ``with``."""
    found = dis.Bytecode(code)
    steps = list(found)
    if not hasattr(found, "exception_entries"):  # before Python 3.11
        return [(each.offset, each.argval) for each in steps if each.opname == "SETUP_FINALLY"]
    next_to = {one.offset: (one.opname, other.opname) for one, other in zip(steps, steps[1:])}
    return [
        (each.start, each.end)
        for each in found.exception_entries
        if (names := next_to.get(each.target, ("", "")))[0] == "PUSH_EXC_INFO" and names[1] != "WITH_EXCEPT_START"
    ]


def without_unused(operations: list[Operation], needed: set[int]) -> list[Operation]:
    """The operations whose results somebody sees, and those that may fail, are random, write, check or wait: all but
    views, and numbers that a step of an optimizer reads."""
    kept, needed = [], set(needed)
    for operation in reversed(operations):
        made = {slot for slots in operation.results for slot in slots if slot >= 0}
        returns = private_names.schema_of(operation.operator).returns
        may_be_left_out = operation.operator is ITEM or all(each.alias_info is not None for each in returns)
        if made & needed or not made or operation.writes or not may_be_left_out:
            needed |= set(operation.slots())
            kept.append(operation)
    return kept[::-1]


def in_place(operations: list[Operation], kept: set[int]) -> list[Operation]:
    """Activations of what nobody else needs write over it: the same numbers, and no memory of their own."""
    uses: Counter[int] = Counter(slot for operation in operations for slot in operation.slots())
    makers = {slots[0]: each for each in operations for slots in each.results if each.makes_memory and len(slots) == 1}
    changed = []
    for operation in operations:
        schema = private_names.schema_of(operation.operator)
        inner = operation.arguments[0] if operation.arguments else None
        number = inner.number if isinstance(inner, Slot) else -1
        is_activation = schema.name in _ACTIVATIONS and not schema.overload_name
        if is_activation and uses[number] == 1 and number in makers and number not in kept:
            form = getattr(torch.ops.aten, schema.name.removeprefix("aten::") + "_").default
            operation = replace(operation, operator=form, label=operation.name)
        changed.append(operation)
    return changed
