# SPDX-License-Identifier: MIT
"""What names and expressions in the source of a script stand for: functions, their variables, chains.

A *chain* is how an expression begins (a global name, a variable of an enclosing function, a parameter) and the steps
from there: ``.name``, ``[]`` for an item, ``?`` for what a method returned, ``class``. A variable of a function stands
for all chains that are assigned to it anywhere in the function.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from ..script.conventions import SETUP

Steps = tuple[str, ...]

ANY = ".*"
"""The step to an attribute whose name is not in the source: ``getattr(x, name)``, ``vars(x)``."""
CLASS = "class"
ITEM = "[]"
COPY = "copy"
WITHIN = "?"
"""The step to something at any depth: what a method returns, what a function of Python is given."""

# These run while a script is loaded, or make new objects. What they write is there again after a restart.
_MAKERS = frozenset(
    ("__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__", "__class_getitem__", SETUP)
)
_FRESH = frozenset(
    ("clone", "deepcopy", "item", "tolist", "numel", "size", "dim", "format", "join", "split")
    + ("strip", "lower", "upper", "encode")
)
_PASS_ON = frozenset(
    ("iter", "next", "zip", "enumerate", "reversed", "filter", "map", "vars")
    + ("chain", "cycle", "islice", "tee", "asarray", "as_tensor", "from_numpy", "cast", "partial", "min")
    + ("max", "nditer", "ravel", "atleast_1d")
)
_COPIES = frozenset(("list", "tuple", "sorted", "set", "frozenset", "dict", "deque", "OrderedDict", "Counter"))
_PARTS: dict[type, tuple[str, ...]] = {
    ast.IfExp: ("body", "orelse"),
    **dict.fromkeys((ast.Starred, ast.Await, ast.NamedExpr, ast.YieldFrom, ast.DictComp), ("value",)),
    **dict.fromkeys((ast.BoolOp, ast.Dict), ("values",)),
    **dict.fromkeys((ast.Tuple, ast.List, ast.Set), ("elts",)),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp), ("elt",)),
}
"""Where the value of an expression may come from."""
DEPTH = 5

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Root(NamedTuple):
    """``kind``: "global" (of the file ``owner``), "free" (of ``owner``, the enclosing function), "parameter"."""

    kind: str
    name: str
    owner: Any = None


class Chain(NamedTuple):
    root: Root
    steps: Steps = ()

    def then(self, *steps: str) -> Chain:
        # The items of a copy are those of the original.
        before = self.steps[:-1] if self.steps[-1:] == (COPY,) and steps[:1] == (ITEM,) else self.steps
        return Chain(self.root, (*before, *steps)[:DEPTH])


class Scope:
    """A function, and what its names stand for."""

    def __init__(self, file: str, node: Any, parent: Scope | None, owner_class: str | None) -> None:
        self.file = file
        self.node, self.parent, self.owner_class = node, parent, owner_class
        self.name = getattr(node, "name", "<lambda>")
        decorators = getattr(node, "decorator_list", [])
        self.line = min([node.lineno, *(each.lineno for each in decorators)])
        arguments = node.args
        self.positional = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        others = [*arguments.kwonlyargs, *filter(None, (arguments.vararg, arguments.kwarg))]
        self.parameters = {*self.positional, *(each.arg for each in others)}
        names = {each.id for each in decorators if isinstance(each, ast.Name)}
        self.is_method = owner_class is not None and "staticmethod" not in names
        self.is_of_class = self.is_method and ("classmethod" in names or self.name in ("__new__", "__init_subclass__"))
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.variables: dict[str, list[Any]] = defaultdict(list)
        self.only_in_comprehensions: set[str] = set()
        self.returned: list[Any] = []
        self.is_made = self.name in _MAKERS

    def body(self) -> list[Any]:
        return self.node.body if isinstance(self.node.body, list) else [self.node.body]


class Program(Protocol):
    """What chains are looked for in: all files of a script."""

    def root_of(self, scope: Scope, name: str) -> Root: ...

    def called(self, name: str) -> list[Scope]: ...


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function but those of functions and classes in it."""
    yield node
    if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        for child in ast.iter_child_nodes(node):
            yield from inside(child)


def bind(scope: Scope) -> None:
    """Find the names that a function binds, and to what."""
    in_comprehensions: set[str] = set()
    for node in (each for statement in scope.body() for each in inside(statement)):
        if isinstance(node, ast.Global):
            scope.globals.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            scope.nonlocals.update(node.names)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                _bind_target(scope, target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            _bind_target(scope, node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            _bind_target(scope, node.target, None)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            _bind_target(scope, node.target, ("item", node.iter))
        elif isinstance(node, ast.comprehension):
            in_comprehensions.update(each.id for each in ast.walk(node.target) if isinstance(each, ast.Name))
            _bind_target(scope, node.target, ("item", node.iter))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            _bind_target(scope, node.optional_vars, node.context_expr)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)) and node.name:
            scope.variables[node.name].append(None)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                scope.variables[(alias.asname or alias.name).partition(".")[0]].append(None)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            scope.variables[node.id].append(None)
        elif isinstance(node, ast.Return) and node.value is not None:
            scope.returned.append(node.value)
        elif isinstance(node, ast.Yield) and node.value is not None:
            scope.returned.append(("within", node.value))
        elif isinstance(node, ast.Match):
            for each in ast.walk(node):
                if isinstance(each, (ast.MatchAs, ast.MatchStar)) and each.name:
                    scope.variables[each.name].append(("within", node.subject))
    if isinstance(scope.node, ast.Lambda):
        scope.returned.append(scope.node.body)
    for name in (*scope.globals, *scope.nonlocals):
        scope.variables.pop(name, None)
    outside = {
        each.id
        for statement in scope.body()
        for each in _outside_of_comprehensions(statement)
        if isinstance(each, ast.Name) and isinstance(each.ctx, (ast.Store, ast.Del))
    }
    scope.only_in_comprehensions = in_comprehensions - outside


def _outside_of_comprehensions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, (*FUNCTIONS, ast.ClassDef, *_COMPREHENSIONS)):
        for child in ast.iter_child_nodes(node):
            yield from _outside_of_comprehensions(child)


def _bind_target(scope: Scope, target: ast.AST, value: Any) -> None:
    if isinstance(target, ast.Name):
        scope.variables[target.id].append(value)
    elif isinstance(target, ast.Starred):
        _bind_target(scope, target.value, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        listed = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        is_each = len(listed) == len(target.elts) and not any(isinstance(each, ast.Starred) for each in target.elts)
        for number, each in enumerate(target.elts):
            _bind_target(scope, each, listed[number] if is_each else value and ("item", value))


def chains_of(analysis: Program, scope: Scope, node: Any, seen: frozenset) -> set[Chain]:
    """What the value of an expression may be, or be a part of; empty for what is new."""

    def of(inner: Any, *steps: str) -> set[Chain]:
        return {chain.then(*steps) for chain in chains_of(analysis, scope, inner, seen)}

    if node is None or len(seen) > 40:
        return set()
    if isinstance(node, tuple):
        return of(node[1], ITEM if node[0] == "item" else WITHIN)
    if isinstance(node, ast.Name):
        return _chains_of_name(analysis, scope, node.id, seen)
    if isinstance(node, ast.Attribute):
        if node.attr == "__class__":
            return of(node.value, CLASS)
        return of(node.value, ANY if node.attr == "__dict__" else f".{node.attr}")
    if isinstance(node, ast.Subscript):
        if is_call_of(node.value, "globals") and isinstance(node.slice, ast.Constant):
            return {Chain(Root("global", str(node.slice.value), scope.file))}
        return of(node.value, ITEM)
    if isinstance(node, ast.Call):
        return _chains_of_call(analysis, scope, node, seen)
    parts = [getattr(node, name) for name in _PARTS.get(type(node), ())]
    return set().union(*(of(each) for part in parts for each in (part if isinstance(part, list) else [part])))


def _chains_of_name(analysis: Program, scope: Scope, name: str, seen: frozenset) -> set[Chain]:
    if (scope, name) in seen:
        return set()
    seen = seen | {(scope, name)}
    found: set[Chain] = set()
    if name in scope.parameters:
        found.add(Chain(Root("parameter", name, scope)))
    if name in scope.variables:
        for value in scope.variables[name]:
            found |= chains_of(analysis, scope, value, seen)
        if name not in scope.only_in_comprehensions:
            return found
    elif found:
        return found
    root = Root("global", name, scope.file) if name in scope.globals else analysis.root_of(scope, name)
    found.add(Chain(root))
    if root.kind == "free":
        found |= _chains_of_name(analysis, root.owner, name, seen)
    return found


def _chains_of_call(analysis: Program, scope: Scope, node: ast.Call, seen: frozenset) -> set[Chain]:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    found: set[Chain] = set()
    for called in analysis.called(name):
        if (called, "") not in seen:
            inner = seen | {(called, "")}
            for value in called.returned:
                found |= chains_of(analysis, called, value, inner)
    values = [each.value if isinstance(each, ast.Starred) else each for each in node.args]
    if name == "getattr" and len(values) >= 2:
        attribute = values[1].value if isinstance(values[1], ast.Constant) else None
        step = f".{attribute}" if isinstance(attribute, str) else ANY
        return found | {chain.then(step) for chain in chains_of(analysis, scope, values[0], seen)}
    if name == "super" and scope.positional:
        return found | {Chain(Root("parameter", scope.positional[0], scope))}
    if name in ("type", "vars") and len(values) == 1:
        step = CLASS if name == "type" else ANY
        return found | {chain.then(step) for chain in chains_of(analysis, scope, values[0], seen)}
    if name in _COPIES:
        for value in values:
            found |= {chain.then(COPY) for chain in chains_of(analysis, scope, value, seen)}
    elif name in _PASS_ON:
        for value in values:
            found |= {chain.then(WITHIN) for chain in chains_of(analysis, scope, value, seen)}
    elif isinstance(function, ast.Attribute) and name == "copy":
        found |= {chain.then(COPY) for chain in chains_of(analysis, scope, function.value, seen)}
    elif isinstance(function, ast.Attribute) and name not in _FRESH:
        found |= {chain.then(WITHIN) for chain in chains_of(analysis, scope, function.value, seen)}
    return found


def is_call_of(node: Any, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
