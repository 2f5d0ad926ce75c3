# SPDX-License-Identifier: MIT
"""A recording as plain values and tensors, as files hold it. docs/ftr-format.md says what each part is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from ..ranks import sums
from ..recording import operations as tapes
from ..recording.arguments import Given
from ..recording.places import Place
from ..recording.returned import PLAIN, Item, Read
from ..recording.tape import Tape
from ..recording.traced_numbers import CONSTANT
from ..script.results import parts_of
from ..system import private_names
from ..values import dtypes, plain
from ..values.optimizer_settings import is_setting

REFUSED = ("aten::from_file", "aten::_from_file", "aten::_print", "aten::warn", "aten::save", "aten::_assert_async.msg")
"""Operators that open files or write texts."""
_NARROW = ("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz")
"""Element types that no array has. src/ftr/stored_tensor.cpp has the same."""
_VALUES = (bool, int, float, str, type(None))
_TAGGED: dict[type, str] = {
    torch.device: "device",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
}

Plain = dict[str, Any]


class Unsavable(Exception):
    """The reason, a sentence without its end."""


GRADIENT = " (its gradient)"
"""After the name of a parameter."""


class Kept(NamedTuple):
    """What a file keeps beside its recordings, which these may change."""

    storages: Mapping[int, Any]
    """A tensor for each memory, by its address."""
    gradients: Mapping[int, list[str]]
    """Names of those that parameters have, or get, by the identity of the parameter, which may have several names."""
    numbers: Mapping[tuple[int, str, int], str]
    """Names of numbers by the identity of the group, key and item."""


def portable(tape: Tape, kept: Kept) -> Plain:
    """The recording of one call. Its tensors are those of the tape. Unsavable says what no file can hold."""
    if tape.generators:
        raise Unsavable("it draws numbers from a generator of its own; only those of torch itself go on in a file")
    if len(tape.given) > sum(type(target) is Place for target, _ in tape.left):
        raise Unsavable("it adds to gradients that others take away: take them away in it (zero_grad)")
    for place, _ in tape.left:
        raise Unsavable(
            f"it puts another value into {place.path} in each call: write into a tensor that stays (copy_, add_), and "
            "set modes and append to lists outside"
        )
    if tape.guards:
        raise Unsavable(f"what it does depends on {tape.guards[0].text}: count in a tensor (add_), or decide outside")
    for step in tape.steps:
        if step.is_required:
            raise Unsavable(
                f"{step.place}: it goes on only where a number in a tensor is the same one; leave it a tensor"
            )
    before = _before(tape, kept)
    operations = [_operation(*pair) for pair in zip(tape.steps, tape.operations)]
    for (tensor,) in tape.written:
        if tapes.address_of(tensor) not in kept.storages:
            where = next((each.place for each in tape.steps if tapes.address_of(tensor) in each.writes), "")
            raise Unsavable(
                f"{where}: it changes a tensor of shape {tuple(tensor.shape)} that no checkpoint keeps: give it a name"
            )
    slots, constants, views = _constants(tape, kept)
    return {
        "batch": False,
        "least": 1,
        "inputs": _inputs(tape.arguments, tape.inputs),
        "slots": slots,
        "constants": constants,
        "operations": [*views, *operations],
        "results": list(tape.results),
        "template": _template(tape.template),
        "numbers": [_number(source, kept) for source in tape.numbers],
        "branches": [(code, _formula(one), _formula(two), is_true) for code, one, two, is_true in tape.branches],
        "before": before,
        "gradients": [
            (name, slot)
            for parameter, slot, _ in tape.gradients_after
            for name in kept.gradients.get(id(parameter), [])
        ],
        "writes": bool(tape.written or tape.gradients_after),
        "written_inputs": list(tape.written_inputs),
    }


def refuse_operator(name: str, overload: str) -> None:
    """Unsavable for an operator that a file may not name."""
    # Those of other libraries and of Python, such as prims, are not there where a file is read.
    is_known = name.startswith("aten::") or name == sums.NAME
    if not is_known or name in REFUSED or f"{name}.{overload}" in REFUSED:
        raise Unsavable(f"the operator {name}, which a saved recording may not call")


def _constants(tape: Tape, kept: Kept) -> tuple[int, list[tuple[int, Any]], list[tuple]]:
    """How many slots there are, the constants, and operations that make others of them.

    A file holds each memory as one element type. Complex parameters are seen as real ones by optimizers.
    """
    count, constants, views = tape.slots, [], []
    whole: dict[int, tuple[int, Any]] = {}
    complex_last = sorted((tensor for _, tensor in tape.constants), key=lambda each: each.is_complex())
    bases = {**{tapes.address_of(each): each for each in complex_last}, **kept.storages}
    for slot, tensor in tape.constants:
        dtype_name(tensor.dtype)
        address = tapes.address_of(tensor)
        base = bases[address]
        if base.dtype == tensor.dtype or not tensor.numel():
            constants.append((slot, tensor.detach()))
            continue
        if base.dtype.to_real() != tensor.dtype:
            raise Unsavable(f"it sees memory of {base.dtype} as {tensor.dtype}")
        if address not in whole:
            whole[address] = count, base.detach()
            views.append(_call(torch.ops.aten.view_as_real.default, [("slot", count)], count + 1))
            constants.append(whole[address])
            count += 2
        sizes = [("value", list(each)) for each in (tensor.shape, tensor.stride())]
        arguments = [("slot", whole[address][0] + 1), *sizes, ("value", tensor.storage_offset())]
        views.append(_call(torch.ops.aten.as_strided.default, arguments, slot))
    return count, constants, views


def _call(operator: Any, arguments: list[tuple], result: int) -> tuple:
    schema = private_names.schema_of(operator)
    return schema.name, schema.overload_name, str(schema), arguments, [[result]]


def _operation(step: tapes.Operation, described: tuple) -> tuple:
    name, overload, arguments, results = described
    if tapes.is_of_ranks(step.operator) and not tapes.exchanges_at_once(step.operator):
        raise Unsavable(
            f"{step.place}: it averages over a process group of torch.distributed, which is taken where there is one: "
            "save it in a process that makes none (init_process_group), and loads the script with communicator=, so "
            "that the MPI of the program does it"
        )
    try:
        refuse_operator(name, overload)
    except Unsavable as reason:
        raise Unsavable(f"{step.place}: it calls {reason}") from None
    schema = str(private_names.schema_of(step.operator))
    try:
        return name, overload, schema, [_argument(each) for each in arguments], [list(slots) for slots in results]
    except Unsavable as reason:
        raise Unsavable(f"{step.place}: {step.name} is given {reason}") from None


def _argument(described: tuple[str, Any]) -> tuple:
    kind, value = described
    if kind == "number":
        return "number", _formula(value)
    if kind == "numbers":
        return "numbers", [_formula(each) for each in value]
    if kind == "list":
        return "list", list(value)
    if kind not in ("value", "waits"):
        return kind, value
    if isinstance(value, torch.dtype):
        return "dtype", dtype_name(value)
    if type(value) in _TAGGED:
        return _TAGGED[type(value)], str(value).removeprefix("torch.")
    if isinstance(value, complex):
        return "complex", float(value.real), float(value.imag)
    return "value", _value(value)


def dtype_name(dtype: Any) -> str:
    """The name of an element type; Unsavable for one that programs without Python do not know."""
    name = str(dtype).removeprefix("torch.")
    if name not in dtypes.BY_NAME and name not in _NARROW:
        raise Unsavable(f"numbers of type {name}, which a program without Python does not know")
    return name


def _value(value: Any) -> Any:
    items = list(map(plain, value)) if isinstance(value, (list, tuple)) else [plain(value)]
    if all(type(each) in _VALUES for each in items):
        return items if isinstance(value, (list, tuple)) else items[0]
    raise Unsavable(f"an object of type {type(value).__name__}, which no file holds")


def _formula(formula: Any) -> list[tuple[int, Any]]:
    return [(int(code), float(what) if code == CONSTANT else what) for code, what in formula]


def identity(tensor: Any) -> tuple:
    """Of what is seen of memory. Parameters may be pieces of one storage."""
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()


def _before(tape: Tape, kept: Kept) -> list[tuple[str, int]]:
    """Gradients that are read or added to, with their slots; with -1 those that must not be there yet."""
    slots = {id(tensor): slot for slot, tensor in tape.constants}
    made = {id(parameter): cleared for parameter, slot, cleared in tape.gradients_after if slot >= 0}
    found: list[tuple[str, int]] = []
    for parameter, was_there, used in tape.gradients_before:
        if used is not None:
            names = kept.gradients.get(id(parameter), []) if parameter.grad is used else []
            if not names:
                raise Unsavable(
                    "it adds to gradients, or reads them, and they are no longer those with which it was recorded, or "
                    "no checkpoint keeps them: call it again, then save it"
                )
            found += [(name, slots[id(used)]) for name in names]
        elif not was_there and made.get(id(parameter), 0) > len(tape.operations):
            # what is taken away in the call may be there before it
            found += [(name, -1) for name in kept.gradients.get(id(parameter), [])]
    return found


def _number(source: tuple, kept: Kept) -> tuple:
    if len(source) == 2:
        return "count", source[0].detach(), int(source[1])
    group, key, item = source
    name = kept.numbers.get((id(group), key, item))
    if name is None and not is_setting(group[key]):
        raise Unsavable(f"it uses {key!r} of an optimizer, which is 0 now: save it while that is another number")
    if name is None:
        raise Unsavable(f"it uses {key!r} of an optimizer that no name of the script leads to")
    return "setting", name


def _inputs(arguments: list[Given], slots: list[int]) -> list[tuple]:
    found: list[tuple] = []
    numbers = iter(slots)
    for name, value, dtype, shape, strides in arguments:
        if dtype is not None:
            sizes = [[(0, each) for each in axes] for axes in (shape, strides)]
            found.append((name, "tensor", next(numbers), dtype_name(dtype), *sizes))
        elif type(value) in _VALUES:
            found.append((name, "value", value))
        else:
            raise Unsavable(f"its argument {name or len(found) + 1} is of type {type(value).__name__}")
    return found


def _template(value: Any) -> tuple:
    """Containers as what they look like from Fortran: names and an order, or an order alone."""
    if isinstance(value, Read):
        raise Unsavable("it returns a number that it takes out of a tensor (item): return the tensor")
    if isinstance(value, Item):
        return "tensor", value.number
    if type(number := plain(value)) in _VALUES:
        return "value", number
    if isinstance(value, PLAIN):
        raise Unsavable(f"it returns a {type(value).__name__}, which no file holds")
    if type(value) in (tuple, list):
        return type(value).__name__, [_template(each) for each in value]
    names, items = parts_of(value)
    if items is None:
        raise Unsavable(f"it returns a {type(value).__name__}, which no file holds")
    nodes = [_template(each) for each in items]
    if names is None:
        return "tuple", nodes
    return "dict" if isinstance(value, Mapping) else "named", list(names), nodes
