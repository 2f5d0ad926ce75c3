# SPDX-License-Identifier: MIT
"""What a saved model expects of its inputs: their order, names, types and shapes; and inputs as arrays of NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import FtnPytorchError, did_you_mean
from ...script.call_text import converting
from ...script.shapes import Shape, mismatch
from ...values import dtype_name
from ...values.dtypes import ElementType
from .narrow_types import advice, converted, is_narrow, narrowed

ABOUT_AXES = 'Axes are counted from 0, in reverse of the Fortran order unless the model was loaded with layout="same".'


@dataclass(frozen=True)
class Input:
    """One input. Shapes are in the axis order of Python: sizes, names of sizes that must agree, None for any size."""

    name: str | None
    dtype: str | None = None
    """As torch and NumPy both call it, such as "float32"; None if it is not known."""
    shape: Shape | None = None

    def __str__(self) -> str:
        name = self.name or "an input without name"
        if self.dtype is None or self.shape is None:
            return name
        return (
            f"{name}: {self.dtype} of shape ({', '.join('any' if size is None else str(size) for size in self.shape)})"
        )


def described(name: str, dtype: ElementType | None, kind: str, shape: Shape | None, what: str, model: object) -> Input:
    """An "input" or "output" of a type that the model calls ``kind``; FORMAT where Fortran cannot take part in that."""
    if dtype is None or (what == "output" and dtype.code is None):
        text = f"{model}: its {what} {name!r} is of type {kind}, which Fortran cannot take part in; export the model"
        raise FtnPytorchError("FORMAT", f"{text} with tensors of numbers or logicals (for scikit-learn: zipmap=False)")
    return Input(name, dtype.name, shape)


def arrange(inputs: Sequence[Input], args: Sequence[Any], named: Mapping[str, Any], where: str) -> list[Any]:
    """Values in the order of the inputs; SIGNATURE if they are too few, too many, or of other names."""
    values = dict(enumerate(args))
    places = {entry.name: place for place, entry in enumerate(inputs) if entry.name is not None}
    for name, value in named.items():
        place = places.get(name)
        if place is None:
            hint = did_you_mean(name, places)
            raise FtnPytorchError("SIGNATURE", f"{where} has no input {name!r}; {_listed(inputs)}{hint}")
        if place in values:
            raise FtnPytorchError("SIGNATURE", f"{where} is given its input {name!r} twice, by position and by name")
        values[place] = value
    if len(args) > len(inputs) or len(values) < len(inputs):
        given = "1 input" if len(values) == 1 else f"{len(values)} inputs"
        raise FtnPytorchError("SIGNATURE", f"{where} is called with {given}; {_listed(inputs)}")
    return [values[place] for place in range(len(inputs))]


def check(inputs: Sequence[Input], values: Sequence[Any], where: str) -> None:
    """DTYPE or SHAPE if arrays are not what the inputs expect. Plain numbers pass for inputs without axes."""
    sizes: dict[str, tuple[int, str]] = {}
    for number, (entry, value) in enumerate(zip(inputs, values), 1):
        name = entry.name or f"input {number}"
        shape = getattr(value, "shape", None)
        if shape is None:
            if entry.shape:
                raise FtnPytorchError("SHAPE", f"{where}: {name} is {value!r} and must be an array: {entry}")
            continue
        found = dtype_name(value)
        if entry.dtype is not None and found != entry.dtype:
            raise FtnPytorchError(
                "DTYPE",
                f"{where}: {name} is an array of {found}, the model expects {entry.dtype}. "
                f"{_cast_hint(found, entry.dtype)}.",
            )
        if entry.shape is not None:
            _check_shape(entry, name, tuple(shape), sizes, where)


def _check_shape(entry: Input, name: str, found: tuple, sizes: dict[str, tuple[int, str]], where: str) -> None:
    wrong = mismatch(found, entry.shape or (), sizes, lambda axis: f"axis {axis} of {name}")
    if wrong:
        raise FtnPytorchError(
            "SHAPE",
            f"{where}: {name} has shape {found}, the model expects {entry}: {wrong}. {ABOUT_AXES}",
        )


def _cast_hint(found: str, wanted: str) -> str:
    if is_narrow(wanted):
        return advice(wanted)
    declare = "Declare the Fortran array so"
    if found.startswith("float") and wanted in ("float32", "float64"):
        return f"{declare}, or {converting(wanted)}"
    return declare


def _listed(inputs: Sequence[Input]) -> str:
    if not inputs:
        return "it has no inputs"
    return f"it has {'1 input' if len(inputs) == 1 else f'{len(inputs)} inputs'}: {'; '.join(map(str, inputs))}"


def as_input(entry: Input, value: Any, dtype: str, where: str) -> Any:
    """An array for an input, the same one where nothing is to be done. DTYPE for a number that it cannot be.

    ``dtype``: what real arrays are cast to, "keep" for not at all.
    """
    import numpy

    if not hasattr(value, "__array_interface__"):
        if isinstance(value, str) or (isinstance(value, (float, complex)) and not str(entry.dtype).startswith("float")):
            raise FtnPytorchError("DTYPE", f"{where}: {entry.name} is {value!r}, the model expects {entry}")
        if not is_narrow(entry.dtype):
            return numpy.asarray(value, dtype=entry.dtype)
        value = numpy.asarray(value)
    if is_narrow(entry.dtype):
        return narrowed(entry.dtype, value, f"{where}: {entry.name}")
    return cast(value, dtype)


def cast(value: Any, dtype: str) -> Any:
    """A real array or tensor as one of ``dtype``, the same one for "keep". Other values pass."""
    found = dtype_name(value) if hasattr(value, "dtype") else ""
    return converted(value, dtype) if "float" in found and dtype not in ("keep", found) else value
