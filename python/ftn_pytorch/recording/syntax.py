# SPDX-License-Identifier: MIT
"""The syntax tree of code that has run: which expression an instruction belongs to, and what is around that."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from types import CodeType, FrameType

from ..values.code_names import codes_in

Position = tuple[int | None, int | None, int | None, int | None]
"""First line, last line, and the columns where they begin and end."""


class Syntax:
    """That of one function. ``parents``: what each of its nodes is a part of."""

    def __init__(self, function: ast.AST) -> None:
        self.function = function
        self.parents = {inner: outer for outer in ast.walk(function) for inner in ast.iter_child_nodes(outer)}
        inside = [each for each in self.parents if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        outside = [each.names for each in self.parents if isinstance(each, (ast.Global, ast.Nonlocal))]
        self.variables = {each.id for each in inside} - {name for names in outside for name in names}
        """Local ones to which something is assigned."""
        self._nodes: dict[Position, ast.AST] = {}
        for node in self.parents:
            if isinstance(node, ast.expr):
                # of several with one position, such as a name and the statement that it is, the innermost
                self._nodes[node.lineno, node.end_lineno, node.col_offset, node.end_col_offset] = node

    def at(self, position: Position) -> ast.AST | None:
        return self._nodes.get(position)

    def loads(self, name: str) -> Iterator[ast.Name] | None:
        """Where a local variable is read; None where functions inside of this one may use it, too."""
        found = [each for each in self.parents if isinstance(each, ast.Name) and each.id == name]
        inside = [each for each in self.parents if isinstance(each, (ast.Lambda, ast.FunctionDef, ast.ClassDef))]
        is_shared = any(each in ast.walk(one) for one in inside for each in found)
        return None if is_shared else (each for each in found if isinstance(each.ctx, ast.Load))


def expression_at(frame: FrameType) -> tuple[Syntax | None, ast.AST | None]:
    """What a frame evaluates now, and the syntax of its code. None where the source is not there, is not that of the
    code, or instructions do not tell their places."""
    code = frame.f_code
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    found = next((each for known, each in _of_file(code.co_filename, text) if known == code), None)
    return found, None if found is None else found.at(positions_of(code)[frame.f_lasti // 2])


@functools.lru_cache(maxsize=1000)
def positions_of(code: CodeType) -> list[Position]:
    return list(code.co_positions())


@functools.lru_cache(maxsize=100)
def _of_file(path: str, text: str) -> list[tuple[CodeType, Syntax]]:
    if not hasattr(CodeType, "co_positions"):  # before Python 3.11
        return []
    try:
        tree = ast.parse(text)
        # what is compared with the code that runs: a file may have been changed since it was loaded
        whole = compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return []
    nodes = [each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.Lambda))]
    found = []
    for code in codes_in(whole):
        near = [each for each in nodes if _is_of(each, code)]
        if len(near) == 1:
            found.append((code, near[0]))
    return [(code, Syntax(node)) for code, node in found]


def _is_of(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and (node.lineno == code.co_firstlineno)
    assert isinstance(node, ast.FunctionDef)
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return code.co_name == node.name and first == code.co_firstlineno
