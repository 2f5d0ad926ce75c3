# SPDX-License-Identifier: MIT
"""What the code of a script writes to, as its source tells: names, cells, attributes, items, also through other names.

What a function does to its parameters is done to what is passed to any function of that name. So more is found than can
happen, and never less, but for texts that are run (``exec``) and for names that are made as texts.
"""

from __future__ import annotations

import ast
import contextlib
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..system import process
from .scopes import (
    ANY,
    COPY,
    DEPTH,
    FUNCTIONS,
    ITEM,
    WITHIN,
    Chain,
    Root,
    Scope,
    Steps,
    bind,
    chains_of,
    inside,
    is_call_of,
)

ASSIGNED, ASSIGNED_BY_SELF, IN_PLACE, NEXT, FOR = "assigned", "assigned by self", "in place", "next", "for"
PASSED, CALLED, WITH, READ, HANDED = "passed", "()", "with", "read", "handed"
"""What is done to a value. ``READ``: an item is asked for. ``HANDED``: it is given to a function that is not known."""

# A function that goes down a tree by itself, through many fields, is done with each way through them. Beyond so many
# ways into one value the first step has to do.
_MANY_EVENTS = 1000

_CHANGES_ARGUMENT = frozenset(
    ("heappush", "heappop", "heapify", "heapreplace", "heappushpop", "shuffle", "insort", "insort_left")
    + ("insort_right", "copyto", "at", "put", "place", "putmask", "put_along_axis", "fill_diagonal")
    + ("setitem", "delitem", "iadd", "isub", "imul", "itruediv", "ior", "iand", "iconcat")
)


class Event(NamedTuple):
    """Something is done to what ``steps`` lead to. ``is_made``: only while the script or an object is made."""

    steps: Steps
    operation: str
    where: tuple[str, int]
    is_made: bool = False


class Analysis:
    """All writes of some files. ``events``: by root; ``scopes``: functions by file, first line and name.

    ``sources``: text by file; what is no Python is left out.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.events: dict[Root, dict[Event, None]] = defaultdict(dict)
        self.scopes: dict[tuple[str, int, str], list[Scope]] = defaultdict(list)
        self.lines = {file: source.splitlines() for file, source in sources.items()}
        self._known: set[tuple[Root, Steps, str, bool]] = set()
        self._named: dict[str, list[Scope]] = defaultdict(list)
        self._passed: list[tuple[Chain, str, Any, Any, bool]] = []
        self._scopes: list[Scope] = []
        self._of_node: dict[int, Scope] = {}
        trees = {}
        for file, source in sources.items():
            with contextlib.suppress(SyntaxError, ValueError):
                trees[file] = process.parse(source)
        for file, tree in trees.items():
            self._find(file, tree, None, None)
        self._find_makers(list(trees.values()))
        for scope in self._scopes:
            _Recorder(self, scope).record()
        self._follow_arguments()

    def root_of(self, scope: Scope, name: str) -> Root:
        """What a name that is free in a function stands for."""
        outer = scope.parent
        while outer is not None:
            if name in outer.globals:
                break
            if name in outer.parameters or (name in outer.variables and name not in outer.nonlocals):
                return Root("free", name, outer)
            outer = outer.parent
        return Root("global", name, scope.file)

    def add(self, chain: Chain, operation: str, where: tuple[str, int], is_made: bool) -> None:
        if COPY in chain.steps:
            return
        if operation == CALLED and chain.steps and chain.steps[-1].startswith("."):
            chain, operation = Chain(chain.root, chain.steps[:-1]), f"{chain.steps[-1][1:]}()"
        events = self.events[chain.root]
        if len(events) >= _MANY_EVENTS and len(chain.steps) > 1:
            is_write = operation in (ASSIGNED, ASSIGNED_BY_SELF, ITEM, NEXT) or operation.endswith("_()")
            chain, operation = Chain(chain.root, chain.steps[:1]), IN_PLACE if is_write else operation
        # the first line that does it is the one that is told
        key = (chain.root, chain.steps, operation, is_made)
        if key not in self._known:
            self._known.add(key)
            events[Event(chain.steps, operation, where, is_made)] = None

    def add_passed(self, chain: Chain, name: str, position: Any, where: tuple[str, int], is_made: bool) -> None:
        self._passed.append((chain, name, position, where, is_made))

    def called(self, name: str) -> list[Scope]:
        """Functions that a call of this name may reach."""
        return self._named.get(name, [])

    def _find(self, file: str, node: ast.AST, parent: Scope | None, owner_class: str | None) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, FUNCTIONS):
                self._find(file, child, parent, child.name if isinstance(child, ast.ClassDef) else owner_class)
                continue
            scope = Scope(file, child, parent, owner_class)
            self._scopes.append(scope)
            self._of_node[id(child)] = scope
            self.scopes[file, scope.line, scope.name].append(scope)
            self._named[scope.name].append(scope)
            bind(scope)
            body = scope.body()
            outside = [each for each in ast.iter_child_nodes(child) if not any(each is one for one in body)]
            self._find(file, ast.Module(body, []), scope, None)
            self._find(file, ast.Module(outside, []), parent, owner_class)  # type: ignore[arg-type]

    def _find_makers(self, trees: list[ast.Module]) -> None:
        """Decorators run once; so do functions with ``_`` that nothing but the above mentions."""
        mentioned: dict[str, list[Scope | None]] = defaultdict(list)
        for tree in trees:
            for node in ast.walk(tree):
                for decorator in getattr(node, "decorator_list", ()):
                    called = decorator.func if isinstance(decorator, ast.Call) else decorator
                    for scope in self._named.get(getattr(called, "id", ""), ()):
                        scope.is_made = True
            self._mentions(tree, None, mentioned)
        changed = True
        while changed:
            changed = False
            for scope in self._scopes:
                where = mentioned.get(scope.name, [])
                is_private = scope.name.startswith("_") and not scope.name.endswith("__")
                if is_private and not scope.is_made and where and all(each is None or each.is_made for each in where):
                    scope.is_made = changed = True

    def _mentions(self, node: ast.AST, scope: Scope | None, found: dict[str, list[Scope | None]]) -> None:
        scope = self._of_node.get(id(node), scope)
        if isinstance(node, ast.Name):
            found[node.id].append(scope)
        elif isinstance(node, ast.Attribute):
            found[node.attr].append(scope)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found[node.value].append(scope)
        for child in ast.iter_child_nodes(node):
            self._mentions(child, scope, found)

    def _follow_arguments(self) -> None:
        """What functions do to their parameters is done to what is passed to them, also over several calls."""
        for _ in range(DEPTH):
            before = sum(map(len, self.events.values()))
            for chain, name, position, where, is_made in self._passed:
                for scope in self.called(name):
                    for parameter, is_item in _parameters(scope, position):
                        for event in list(self.events.get(Root("parameter", parameter, scope), ())):
                            steps = event.steps
                            if is_item and steps[:1] not in ((ITEM,), (WITHIN,)):
                                continue
                            operation = ASSIGNED if event.operation == ASSIGNED_BY_SELF else event.operation
                            given = chain.then(*(steps[1:] if is_item else steps))
                            self.add(given, operation, where, is_made or event.is_made)
            if sum(map(len, self.events.values())) == before:
                break


def _parameters(scope: Scope, position: Any) -> list[tuple[str, bool]]:
    """The parameters that may take an argument, and whether it is an item of theirs (``*args``).

    ``position``: a name; a number, counted without ``self`` from 0, so that -1 is ``self``; None for any.
    """
    arguments = scope.node.args
    if position is None:
        return [(name, False) for name in scope.positional]
    if isinstance(position, str):
        if position in scope.parameters:
            return [(position, False)]
        return [(arguments.kwarg.arg, True)] if arguments.kwarg else []
    number = position + scope.is_method
    if 0 <= number < len(scope.positional):
        return [(scope.positional[number], False)]
    return [(arguments.vararg.arg, True)] if arguments.vararg and number >= 0 else []


class _Recorder:
    """Finds what one function does."""

    def __init__(self, analysis: Analysis, scope: Scope) -> None:
        self._all, self._scope = analysis, scope

    def record(self) -> None:
        for statement in self._scope.body():
            for node in inside(statement):
                self._node(node)

    def _add(self, expression: Any, operation: str, node: Any, *steps: str) -> None:
        for chain in self._chains(expression):
            self._all.add(chain.then(*steps), operation, self._where(node), self._scope.is_made)

    def _node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._target(target, node)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            if node.value is not None:
                self._target(node.target, node)
        elif isinstance(node, ast.AugAssign):
            self._target(node.target, node)
            self._add(node.target, IN_PLACE, node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._target(node.target, node)
            self._add(node.iter, FOR, node)
        elif isinstance(node, ast.comprehension):
            self._add(node.iter, FOR, node.iter)
        elif isinstance(node, ast.withitem):
            self._add(node.context_expr, WITH, node.context_expr)
            if node.optional_vars is not None:
                self._target(node.optional_vars, node.context_expr)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self._target(target, node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                self._name((alias.asname or alias.name).partition(".")[0], node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._name(node.name, node)
        elif isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            self._add(node.value, READ, node)
        elif isinstance(node, ast.YieldFrom):
            self._add(node.value, FOR, node)

    def _name(self, name: str, node: Any) -> None:
        if name in self._scope.globals:
            self._assign(Root("global", name, self._scope.file), node)
        elif name in self._scope.nonlocals:
            self._assign(self._all.root_of(self._scope, name), node)

    def _assign(self, root: Root, node: Any) -> None:
        self._all.add(Chain(root), ASSIGNED, self._where(node), self._scope.is_made)

    def _where(self, node: Any) -> tuple[str, int]:
        return self._scope.file, node.lineno

    def _target(self, target: Any, node: Any) -> None:
        if isinstance(target, ast.Name):
            self._name(target.id, node)
        elif isinstance(target, ast.Attribute):
            by_self = self._is_self(target.value)
            self._add(target.value, ASSIGNED_BY_SELF if by_self else ASSIGNED, node, f".{target.attr}")
        elif isinstance(target, ast.Subscript):
            if is_call_of(target.value, "globals") and isinstance(target.slice, ast.Constant):
                self._assign(Root("global", str(target.slice.value), self._scope.file), node)
            self._add(target.value, ITEM, node)
        elif isinstance(target, ast.Starred):
            self._target(target.value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._target(each, node)

    def _is_self(self, node: Any) -> bool:
        scope = self._scope
        is_first = isinstance(node, ast.Name) and scope.positional[:1] == [node.id]
        return is_first and scope.is_method and not scope.is_of_class

    def _call(self, node: ast.Call) -> None:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ("setattr", "delattr", "__setattr__", "__delattr__") and len(node.args) >= 2:
            value = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
            self._add(node.args[0], ASSIGNED, node, f".{value}" if isinstance(value, str) else ANY)
        if isinstance(function, ast.Attribute):
            self._add(function.value, f"{name}()", node)
            self._pass(function.value, name, -1, node)
        else:
            self._add(function, CALLED, node)
            self._pass(function, "__call__", -1, node)
        if _is_type_of_python(function) and node.args:
            self._add(node.args[0], f"{name}()", node)
        changes = name in _CHANGES_ARGUMENT or (name.endswith("_") and not name.endswith("__"))
        arguments = [
            (number, getattr(each, "value", each) if isinstance(each, ast.Starred) else each)
            for number, each in enumerate(node.args)
        ]
        for number, argument in arguments:
            if name in ("next", "anext"):
                self._add(argument, NEXT, node)
            elif changes and (number == 0 or name.endswith("_")):
                self._add(argument, IN_PLACE, node)
        for keyword in node.keywords:
            if keyword.arg == "out":
                self._add(keyword.value, IN_PLACE, node)
        given = [*arguments, *((each.arg or "", each.value) for each in node.keywords)]
        is_unknown = (
            not isinstance(function, ast.Attribute)
            and bool(self._chains(function))
            and not (isinstance(function, ast.Name) and self._is_of_module(function.id))
        )
        for position, argument in given:
            self._argument(argument, name, position, node)
            if is_unknown:
                self._add(argument, HANDED, node)
        self._callbacks([argument for _, argument in given], node)

    def _is_of_module(self, name: str) -> bool:
        scope = self._scope
        return (
            name not in scope.parameters
            and name not in scope.variables
            and (self._all.root_of(scope, name).kind == "global")
        )

    def _callbacks(self, arguments: list[Any], node: Any) -> None:
        """Functions that are passed on are called with what is passed on beside them."""
        for each in arguments:
            name = each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "")
            if name and self._all.called(name):
                for other in arguments:
                    if other is not each:
                        for chain in self._chains(other):
                            given = chain.then(WITHIN)
                            self._all.add_passed(given, name, None, self._where(node), self._scope.is_made)

    def _argument(self, argument: Any, name: str, position: Any, node: Any) -> None:
        self._add(argument, PASSED, node)
        self._pass(argument, name, position, node)
        made = "__init__" if any(each.owner_class == name for each in self._all.called("__init__")) else ""
        if made:
            self._pass(argument, made, position, node)

    def _pass(self, argument: Any, name: str, position: Any, node: Any) -> None:
        if name and self._all.called(name):
            for chain in self._chains(argument):
                self._all.add_passed(chain, name, position, self._where(node), self._scope.is_made)

    def _chains(self, expression: Any) -> set[Chain]:
        return chains_of(self._all, self._scope, expression, frozenset())


def _is_type_of_python(node: Any) -> bool:
    """True for ``list.append`` and its like."""
    types = ("list", "dict", "set", "deque", "bytearray", "OrderedDict", "Counter")
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in types
