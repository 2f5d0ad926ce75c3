# SPDX-License-Identifier: MIT
"""What a function was called with, for the end of the text about its exception."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..values import dtype_name, is_tensor
from .conventions import by_name

_SHAPE_WORDS = re.compile(r"shape|size|dimension|\baxis\b|\bdim\b|broadcast|aligned", re.IGNORECASE)
_TYPE_WORDS = re.compile(r"double.*float|float.*double|float64.*float32|float32.*float64|same datatype", re.IGNORECASE)
_ORDER = 'The axes are in reverse of the Fortran order; load(..., layout="same") keeps the Fortran order.'


def describe(
    signature: inspect.Signature | None, args: tuple, kwargs: Mapping[str, Any], layout: str, failure: str
) -> str:
    """A line for each argument, such as "x: float32 (3, 10), Fortran (10, 3)"; empty without arguments.

    ``failure`` is the text about the exception. If it may be about shapes, a line on ``layout`` follows, and one on
    ``dtype`` if it is about single and double precision.
    """
    named = {**{f"argument {number}": value for number, value in enumerate(args, 1)}, **kwargs}
    if signature is not None:
        with contextlib.suppress(TypeError):  # that is the exception, then
            named = by_name(signature, args, kwargs)
    reverses = layout == "reversed"
    lines = [f"  {name}: {kind(value, reverses)}" for name, value in _single(named)]
    if not lines:
        return ""
    order = [_ORDER] if reverses and any("Fortran" in line for line in lines) and _SHAPE_WORDS.search(failure) else []
    return "\n".join(["It was called with", *lines, *order, *_precision(named, failure)])


def _precision(named: Mapping[str, Any], failure: str) -> Iterator[str]:
    if not _TYPE_WORDS.search(failure.partition("\n")[0]):
        return
    types = {name: dtype_name(value) for name, value in _single(named) if is_tensor(value)}
    for found, kind_of_fortran, wanted in (("float64", "real(8)", "float32"), ("float32", "real(4)", "float64")):
        names = [name for name, each in types.items() if each == found]
        if names:
            are = "is" if len(names) == 1 else "are"
            yield f"{', '.join(names)} {are} {found}, {kind_of_fortran} in Fortran: {converting(wanted)}."
            return


def converting(dtype: str) -> str:
    """What to do about real arrays that are not of the type of a network."""
    return f'convert real arrays on their way in with load(..., dtype="{dtype}")'


def _single(named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in named.items():
        if isinstance(value, (list, tuple)):
            yield from ((f"{name}[{number}]", item) for number, item in enumerate(value))
        elif isinstance(value, dict):
            yield from ((f"{name}[{key!r}]", item) for key, item in value.items())
        else:
            yield name, value


def kind(value: Any, reverses: bool) -> str:
    """Type and shape of an array, as Python and as Fortran see it; a number or text as it is."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        shape = tuple(value.shape)
        fortran = f", Fortran {shape[::-1]}" if reverses and len(shape) > 1 else ""
        return f"{dtype_name(value)} {shape}{fortran}"
    text = repr(value)
    return text if len(text) < 60 else f"{type(value).__name__} {text[:57]}..."
