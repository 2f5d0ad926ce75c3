# SPDX-License-Identifier: MIT
"""What code makes of a value: an expression that gives another one, or nothing but to hand it on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence, Set
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .footprints import NOWHERE, Footprints, is_plain, value_of
from .syntax import Syntax

_FUNCTIONS = (min, max, abs, int, float, bool)
_COMPUTES = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Call)


class Computed(NamedTuple):
    """What code computes out of a number and of constants."""

    text: str
    node: ast.expr
    of: Callable[[Any], Any]


class Step(NamedTuple):
    """Where a value is: it is the result of this expression."""

    syntax: Syntax
    code: CodeType
    node: ast.AST


def computed(node: ast.expr, syntax: Syntax, frame: FrameType, names: frozenset[str]) -> Computed:
    """The widest expression around one that reads a number, in which all else is constant in a recording.
    ``names``: what is not."""
    widest = node
    while _is_computed(outer := syntax.parents.get(widest), widest, node, frame, names):
        assert isinstance(outer, ast.expr)
        widest = outer
    is_test = isinstance(outer, (ast.If, ast.IfExp, ast.While)) and outer.test is widest
    made = _WithNumber(node, frame).visit(ast.parse(ast.unparse(widest), mode="eval").body)
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg("n")], kwonlyargs=[], kw_defaults=[], defaults=[])
    if is_test:
        made = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), made))
    whole = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, made)))
    return Computed(ast.unparse(widest), widest, eval(compile(whole, "<computed>", "eval"), {}))


class _WithNumber(ast.NodeTransformer):
    """Puts ``n`` in place of what reads a number, and their values in place of other names."""

    def __init__(self, node: ast.expr, frame: FrameType) -> None:
        self._text, self._frame = ast.unparse(node), frame

    def visit_Call(self, node: ast.Call) -> Any:
        node.args = [self.visit(each) for each in node.args]
        return node

    def _named(self, node: Any) -> Any:
        if ast.unparse(node) == self._text:
            return ast.Name("n", ast.Load())
        return ast.Constant(value_of(node, self._frame))

    visit_Name = visit_Attribute = visit_Subscript = _named


def _is_computed(outer: Any, inner: ast.AST, node: ast.expr, frame: FrameType, names: frozenset[str]) -> bool:
    if not isinstance(outer, _COMPUTES):
        return False
    parts: Sequence[ast.AST] = [each for each in ast.iter_child_nodes(outer) if isinstance(each, ast.expr)]
    if isinstance(outer, ast.Call):
        if outer.keywords or not any(value_of(outer.func, frame) is each for each in _FUNCTIONS) or outer.func is inner:
            return False
        parts = outer.args
    return all(each is inner or _is_constant(each, node, frame, names) for each in parts)


def _is_constant(part: ast.AST, node: ast.expr, frame: FrameType, names: frozenset[str]) -> bool:
    if ast.unparse(part) == ast.unparse(node):
        return True
    if isinstance(part, (ast.Constant, ast.Name, ast.Attribute)):
        value = value_of(part, frame)
        return getattr(part, "id", getattr(part, "attr", None)) not in names and is_plain(value)
    if isinstance(part, _COMPUTES):
        return _is_computed(part, part, node, frame, names)
    return False


def value_added(node: ast.expr, syntax: Syntax, frame: FrameType) -> Any:
    """What a statement that writes to a place adds to what is there: a number; None if that is not known, NOWHERE if it
    does another thing."""
    outer = syntax.parents.get(node)
    if isinstance(outer, ast.AugAssign) and outer.target is node:
        added, operator = outer.value, outer.op
    elif isinstance(outer, ast.Assign) and outer.targets == [node] and isinstance(outer.value, ast.BinOp):
        if ast.unparse(outer.value.left) != ast.unparse(node):
            return NOWHERE
        added, operator = outer.value.right, outer.value.op
    else:
        return NOWHERE
    if not isinstance(operator, (ast.Add, ast.Sub)):
        return NOWHERE
    value = value_of(added, frame)
    if type(value) not in (int, float):
        return None
    return value if isinstance(operator, ast.Add) else -value


def is_only_added_to(node: ast.expr, syntax: Syntax) -> bool:
    """Whether what is read here is only put back with something added."""
    outer = syntax.parents.get(node)
    if isinstance(outer, ast.AugAssign):
        return outer.target is node
    statement = syntax.parents.get(outer) if outer is not None else None
    return (
        isinstance(outer, ast.BinOp)
        and outer.left is node
        and isinstance(outer.op, (ast.Add, ast.Sub))
        and isinstance(statement, ast.Assign)
        and statement.value is outer
        and [ast.unparse(each) for each in statement.targets] == [ast.unparse(node)]
    )


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
