# SPDX-License-Identifier: MIT
"""What code makes of a value: an expression that gives another one, or nothing but to hand it on."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence, Set
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .footprints import NOWHERE, Access, Footprints, Syntax, value_of
from .returned import PLAIN

_FUNCTIONS = (min, max, abs, int, float, bool)
_COMPUTES = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp)


class Computed(NamedTuple):
    """What code computes out of a number and of constants."""

    text: str
    of: Callable[[Any], Any]


class Step(NamedTuple):
    """Where a value is: it is the result of this expression."""

    syntax: Syntax
    code: CodeType
    node: ast.AST


def computed(access: Access, names: Set[str]) -> Computed:
    """The widest expression around a read of a number, in which all else is constant in a recording. ``names``: what is
    not."""
    widest, text, frame = access.node, ast.unparse(access.node), access.frame
    of = _with_number(widest, text, frame, names)
    while (wider := _with_number(outer := access.syntax.parents.get(widest), text, frame, names)) is not None:
        assert isinstance(outer, ast.expr)
        widest, of = outer, wider
    is_test = isinstance(outer, (ast.If, ast.IfExp, ast.While)) and outer.test is widest
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg("n")], kwonlyargs=[], kw_defaults=[], defaults=[])
    assert of is not None
    if is_test:
        of = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), of))
    whole = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, of)))
    return Computed(ast.unparse(widest), eval(compile(whole, "<computed>", "eval"), {}))


def _with_number(part: Any, text: str, frame: FrameType, names: Set[str]) -> ast.expr | None:
    """An expression with ``n`` in place of what reads the number, and values in place of other names; None where
    something in it is no constant."""
    if isinstance(part, ast.expr) and ast.unparse(part) == text:
        return ast.Name("n", ast.Load())
    if isinstance(part, (ast.Constant, ast.Name, ast.Attribute)):
        value = value_of(part, frame)
        is_constant = getattr(part, "id", getattr(part, "attr", None)) not in names and isinstance(value, PLAIN)
        return ast.Constant(value) if is_constant else None
    made, fields = copy.copy(part), ast.iter_fields(part)
    if isinstance(part, ast.Call):
        function = next((each for each in _FUNCTIONS if value_of(part.func, frame) is each), None)
        if function is None or part.keywords:
            return None
        made, fields = ast.Call(ast.Name(function.__name__, ast.Load()), [], []), iter([("args", part.args)])
    elif not isinstance(part, _COMPUTES):
        return None

    def with_number(inner: Any) -> Any:
        return _with_number(inner, text, frame, names) if isinstance(inner, ast.expr) else inner

    for name, inner in fields:
        new = list(map(with_number, inner)) if isinstance(inner, list) else with_number(inner)
        if new is None or (isinstance(new, list) and None in new):
            return None
        setattr(made, name, new)
    return made


def value_added(access: Access) -> Any:
    """What a statement that reads or writes a place here adds to what is there: a number; None if that is not known,
    NOWHERE if it does another thing."""
    if (found := _sum_around(access.node, access.syntax)) is None:
        return NOWHERE
    value = value_of(found[0], access.frame)
    if type(value) not in (int, float):
        return None
    return value if isinstance(found[1], ast.Add) else -value


def _sum_around(node: ast.expr, syntax: Syntax) -> tuple[ast.expr, ast.operator] | None:
    """What a statement adds to a place that it reads, or writes, here, and how; None for other statements."""
    outer = syntax.parents.get(node)
    if isinstance(outer, ast.AugAssign) and outer.target is node:
        added, operator = outer.value, outer.op
    else:
        statement = syntax.parents.get(outer) if isinstance(outer, ast.BinOp) and outer.left is node else outer
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
            return None
        if [ast.unparse(each) for each in statement.targets] != [ast.unparse(statement.value.left)]:
            return None
        if node is not statement.targets[0] and node is not statement.value.left:
            return None
        added, operator = statement.value.right, statement.value.op
    return (added, operator) if isinstance(operator, (ast.Add, ast.Sub)) else None


class HandedOn:
    """Tells whether a value only comes to stand in results, and where code has written to known places."""

    def __init__(self, prints: Footprints, nodes: Set[ast.AST]) -> None:
        """nodes: expressions that were these places when they ran."""
        self._prints, self._nodes = prints, nodes
        self._seen: set[ast.AST] = set()
        self.sums: list[ast.AST] = []
        """Statements that add it to what stands in a name of these."""

    def holds(self, steps: Sequence[Step]) -> bool:
        """steps: the expression that gives the value, and those in which the functions around that one are called."""
        (syntax, code, node), *callers = steps
        if node in self._seen:
            return True
        self._seen.add(node)
        outer = syntax.parents.get(node)
        if isinstance(outer, ast.Return) or (isinstance(outer, ast.Lambda) and outer is syntax.function):
            return not callers or self.holds(callers)
        is_value = isinstance(outer, (ast.Tuple, ast.List)) or (isinstance(outer, ast.Dict) and node in outer.values)
        if is_value or (isinstance(outer, ast.IfExp) and node is not outer.test):
            assert isinstance(outer, ast.AST)
            return self.holds([Step(syntax, code, outer), *callers])
        if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute):
            to = outer.func.value
            is_append = node in outer.args and is_appended_to(to, syntax) and outer.func not in self._prints.calls_code
            return is_append and self._may_stand_in(to, steps)
        if isinstance(outer, ast.AugAssign):
            is_local = isinstance(outer.target, ast.Name) and outer.target.id in syntax.variables
            self.sums.append(outer)
            return isinstance(outer.op, ast.Add) and not is_local and self._may_stand_in(outer.target, steps)
        targets = outer.targets if isinstance(outer, ast.Assign) else []
        if isinstance(outer, ast.AnnAssign):
            targets = [outer.target]
        flat = [each for one in targets for each in (one.elts if isinstance(one, ast.Tuple) else [one])]
        return bool(flat) and all(self._may_stand_in(each, steps) for each in flat)

    def _may_stand_in(self, target: ast.AST, steps: Sequence[Step]) -> bool:
        (syntax, code, _), *callers = steps
        if not isinstance(target, ast.Name) or target.id not in syntax.variables:
            return target in self._nodes and target not in self._prints.calls_code
        loads = syntax.loads(target.id)
        return loads is not None and all(
            self.holds([Step(syntax, code, each), *callers])
            for each in loads
            if self._prints.has_run(syntax, code, each) and not is_appended_to(each, syntax)
        )


def is_appended_to(node: ast.AST, syntax: Syntax) -> bool:
    """Whether what is read here is a list that a statement appends to."""
    method = syntax.parents.get(node)
    call = syntax.parents.get(method) if isinstance(method, ast.Attribute) and method.attr == "append" else None
    return isinstance(call, ast.Call) and call.func is method and isinstance(syntax.parents.get(call), ast.Expr)
