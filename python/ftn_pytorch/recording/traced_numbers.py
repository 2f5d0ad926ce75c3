# SPDX-License-Identifier: MIT
"""Numbers that remember what they were computed from.

The step of an optimizer computes with numbers of Python: rates, and the count of steps, which it reads out of its
state. While a step is recorded they are ``Traced``, so that a recording can compute the same from what they are in each
call.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

NUMBER, SLOT, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, NEGATE = range(9)
"""Codes of ``Formula`` in src/ftr/tape.hpp."""
LESS, LESS_EQUAL, EQUAL = range(3)
"""Codes of ``Branch`` in src/ftr/tape.hpp."""

COMPUTES: dict[int, Callable[[float, float], Any]] = {
    ADD: operator.add,
    SUBTRACT: operator.sub,
    MULTIPLY: operator.mul,
    DIVIDE: operator.truediv,
    POWER: operator.pow,
}

Formula = tuple[tuple[int, Any], ...]
"""What is computed, in the order of a stack: pairs of a code and a number, a slot, or a constant."""

Branch = tuple[int, Formula, Formula, bool]
"""A comparison, and how it came out."""


class Trace:
    """What one step has computed, in its order, and the comparisons that it has made. Other threads, which find its
    numbers in the groups of the optimizer, compute with them as with any."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self.values: list[float] = []
        self.formulas: list[Formula] = []
        self.branches: dict[tuple[int, Formula, Formula], bool] = {}

    def ways(self) -> list[tuple[int, bool]]:
        """How the comparisons came out."""
        return [(code, is_true) for (code, *_), is_true in self.branches.items()]

    def number(self, value: float, formula: Formula) -> float:
        if threading.get_ident() != self._thread:
            return value
        self.values.append(value)
        self.formulas.append(formula)
        made = Traced(value)
        made.trace, made.formula = self, formula
        return made

    def computed(self, code: int, one: Any, other: Any) -> Any:
        value = COMPUTES[code](float(one), float(other))
        formula = (*formula_of(one), *formula_of(other), (code, 0))
        return self.number(value, formula) if isinstance(value, float) else value

    def compared(self, code: int, one: Any, other: Any, is_true: bool) -> bool:
        # a number of a group that becomes zero ends a recording anyway
        is_end = code == EQUAL and len(one.formula) == 1 and one.formula[0][0] == NUMBER and other == 0
        if not is_end and threading.get_ident() == self._thread:
            self.branches[code, formula_of(one), formula_of(other)] = is_true
        return is_true


def formula_of(value: Any) -> Formula:
    """A number, or what stands for one, as a formula."""
    return value.formula if isinstance(value, (Traced, Number)) else ((CONSTANT, float(value)),)


def _operation(code: int, is_reversed: bool = False) -> Callable[[Traced, Any], Any]:
    def operate(self: Traced, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        return self.trace.computed(code, other, self) if is_reversed else self.trace.computed(code, self, other)

    return operate


def _comparison(code: int, compare: Callable[[float, float], bool], is_negated: bool = False) -> Callable:
    def ask(self: Traced, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        is_true = self.trace.compared(code, self, other, compare(float(self), float(other)))
        return is_true != is_negated

    return ask


class Traced(float):
    """A number like any other, whose trace knows what is computed from it."""

    trace: Trace
    formula: Formula

    __add__, __radd__ = _operation(ADD), _operation(ADD, True)
    __sub__, __rsub__ = _operation(SUBTRACT), _operation(SUBTRACT, True)
    __mul__, __rmul__ = _operation(MULTIPLY), _operation(MULTIPLY, True)
    __truediv__, __rtruediv__ = _operation(DIVIDE), _operation(DIVIDE, True)
    __pow__, __rpow__ = _operation(POWER), _operation(POWER, True)  # type: ignore[assignment]
    __lt__, __ge__ = _comparison(LESS, operator.lt), _comparison(LESS, operator.lt, True)
    __le__, __gt__ = _comparison(LESS_EQUAL, operator.le), _comparison(LESS_EQUAL, operator.le, True)
    __eq__, __ne__ = _comparison(EQUAL, operator.eq), _comparison(EQUAL, operator.eq, True)
    __hash__ = float.__hash__

    def __reduce__(self) -> Any:
        return float, (float(self),)  # a copy, and what a file gets

    def __neg__(self) -> float:
        return self.trace.number(-float(self), (*self.formula, (NEGATE, 0)))

    def __bool__(self) -> bool:
        return not self.trace.compared(EQUAL, self, 0.0, float(self) == 0)


class Number:
    """Stands for a number among the arguments of a recorded operation."""

    def __init__(self, formula: Formula) -> None:
        self.formula = formula

    def slots(self) -> Iterator[int]:
        return (what for code, what in self.formula if code == SLOT)


def renumbered(formula: Formula, places: Mapping[int, Any]) -> Formula:
    """With other places of numbers, or of slots, which then are numbers, too. ``places``: by code, then by place."""
    return tuple((NUMBER, places[code][what]) if code in places else (code, what) for code, what in formula)
