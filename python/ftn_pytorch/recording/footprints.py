# SPDX-License-Identifier: MIT
"""Which instructions of the user's code ran in the call that is recorded, and where these read and wrote what the call
has changed. Python's tracing tells each instruction, its place in the source tells the expression, and what is around
that."""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import linecache
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import torch

from ..system import extension
from ..values.code_names import codes_in
from ..values.held import fields_of, slots
from ..values.kinds import is_simple
from .binding import CELL, SLOT
from .operations import is_of_package, is_of_user
from .recorder import unseen

NOWHERE = object()
"""No value, or one that only code of a user would give."""
_MOST = 1_000_000
"""Instructions that are followed."""
_COMPUTES = (
    *("LOAD_", "BINARY_", "INPLACE_", "UNARY_", "COMPARE_", "IS_OP", "CONTAINS_OP", "TO_BOOL", "BUILD_", "FORMAT_"),
    *("COPY", "SWAP", "DUP_", "ROT_", "PUSH_NULL", "CACHE", "RESUME", "NOP"),
)
"""Beginnings of names of instructions behind which the same statement goes on, and no local variable has changed."""

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


def expression_at(frame: FrameType, offset: int | None = None) -> tuple[Syntax | None, ast.AST | None]:
    """What a frame evaluates now, or at an instruction, and the syntax of its code. None where the source is not there,
    is not that of the code, or instructions do not tell their places."""
    code, offset = frame.f_code, frame.f_lasti if offset is None else offset
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    found = next((each for known, each in _of_file(code.co_filename, text) if known == code), None)
    return found, None if found is None else found.at(positions_of(code)[offset // 2])


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


class Access(NamedTuple):
    """One read or write of a place."""

    is_write: bool
    syntax: Syntax
    node: ast.expr
    frame: FrameType


class Footprints:
    """While it is entered, each access to one of the places is told to what stands beside that. ``obstacle`` says why
    it cannot tell. The expression of an access has been evaluated by then where it writes, and may be where it reads:
    to stop in between would let other threads in."""

    def __init__(self, places: Sequence[tuple[Any, Callable[[Access], None]]]) -> None:
        self.obstacle = ""
        self.calls_code: set[ast.expr] = set()
        """Attributes that were written, and methods ``append``, which may give their value to code of a user."""
        self._places = places
        self.names = {_name_of(each) for each, _ in places} | {"append"}
        """Of places, and of what is looked at beside."""
        self._instructions = extension.module().Instructions(_MOST)
        self._before: Any = None

    def __enter__(self) -> Footprints:
        self._before = sys.gettrace()
        if self._before is not None:
            self.obstacle = "a debugger or a measurement of coverage looks on"
        else:
            self._instructions.enter(self._words_of, self._see)
        return self

    def __exit__(self, *failure: Any) -> None:
        if self._before is None:
            self._instructions.leave()
            if self._instructions.are_too_many:
                self.obstacle = self.obstacle or "too many instructions run in a call to follow them"
            if self._instructions.were_missed:
                self.obstacle = self.obstacle or "this Python has not told which instructions ran"

    def has_run(self, syntax: Syntax, code: CodeType, node: ast.expr) -> bool:
        """Whether an expression was evaluated; true where that is not known."""
        wanted = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
        there = [place for place, each in enumerate(positions_of(code)) if each == wanted]
        return not there or any(self._instructions.has_run(code, place) for place in there)

    def _words_of(self, frame: FrameType) -> bytes | None:
        """Of the code that a frame runs, if it is to be followed."""
        if not (is_of_user(frame) or is_of_package(frame)):
            return None
        kinds, accesses = _instructions(frame.f_code)
        words = bytearray(kinds)
        for offset, (_, name) in accesses.items():
            words[offset // 2] |= extension.module().told if name in self.names else 0
        return bytes(words)

    def _see(self, frame: FrameType, offset: int) -> None:
        try:
            self._note(frame, offset)
        except Exception as failure:  # of what is not foreseen; the call goes on
            self.obstacle = unseen(failure)

    def _note(self, frame: FrameType, offset: int) -> None:
        operation, name = _instructions(frame.f_code)[1][offset]
        syntax, node = expression_at(frame, offset)
        if syntax is None or not isinstance(node, (ast.Name, ast.Attribute)):
            if name == "append":
                return
            self.obstacle = self.obstacle or f"it is not known how {frame.f_code.co_name} uses {name}"
            return
        of = value_of(node.value, frame) if isinstance(node, ast.Attribute) else None
        is_write = operation.startswith(("STORE", "DELETE"))
        is_foreign = name == "append" and type(of) not in (list, deque)
        if isinstance(node, ast.Attribute) and (_calls_code(of, name) if is_write else is_foreign):
            self.calls_code.add(node)
        for place, seen in self._places:
            if _name_of(place) != name:
                continue
            if isinstance(node, ast.Attribute) and of is NOWHERE:
                self.obstacle = self.obstacle or f"it is not known whose {name} {ast.unparse(node)} is"
            elif _is_there(place, node, of, frame):
                seen(Access(is_write, syntax, node, frame))


def value_of(node: ast.AST, frame: FrameType) -> Any:
    """That of a name, or of fields of one, without running code of a user; NOWHERE for all else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        spaces = (frame.f_locals, frame.f_globals, vars(builtins))
        return next((space[node.id] for space in spaces if node.id in space), NOWHERE)
    if isinstance(node, ast.Attribute):
        of = value_of(node.value, frame)
        of_class = _of_class(of, node.attr)
        if of is NOWHERE or hasattr(type(of_class), "__set__"):
            return NOWHERE
        return fields_of(of).get(node.attr, of_class if is_simple(of_class) else NOWHERE)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        of = value_of(node.value, frame)
        return dict.get(of, node.slice.value, NOWHERE) if isinstance(of, dict) else NOWHERE
    return NOWHERE


def called_by(node: ast.AST, frame: FrameType) -> FunctionType | None:
    """The function of Python that a call runs at once: by a name, as a method, or as ``__call__`` of an object."""
    if not isinstance(node, ast.Call):
        return None
    found = value_of(node.func, frame)
    if found is NOWHERE and isinstance(node.func, ast.Attribute):
        found = _of_class(value_of(node.func.value, frame), node.func.attr)
    if isinstance(found, (staticmethod, classmethod, MethodType)):
        found = found.__func__
    if not isinstance(found, (FunctionType, type)):
        found = _of_class(found, "__call__")
    return found if isinstance(found, FunctionType) else None


def _of_class(value: Any, name: str) -> Any:
    """What the class of a value has under a name."""
    kinds = () if value is NOWHERE else type(value).__mro__
    return next((vars(each)[name] for each in kinds if name in vars(each)), NOWHERE)


def _calls_code(of: Any, name: str) -> bool:
    """Whether to write an attribute of an object is more than to put a value into its fields."""
    is_known = type(of).__setattr__ in (object.__setattr__, ModuleType.__setattr__, torch.nn.Module.__setattr__)
    return not is_known or hasattr(type(_of_class(of, name)), "__set__") or name in slots(type(of))


def _name_of(place: Any) -> Any:
    return place.path if place.kind == CELL else place.key


def _is_there(place: Any, node: ast.expr, of: Any, frame: FrameType) -> bool:
    if isinstance(node, ast.Attribute):
        return place.holder is of if place.kind == SLOT else place.holder is fields_of(of)
    return place.kind == CELL or place.holder is frame.f_globals


@functools.lru_cache(maxsize=1000)
def _instructions(code: CodeType) -> tuple[bytes, dict[int, tuple[str, Any]]]:
    """What each word of a code is to ``Instructions``; and the instructions with a name other than that of a local
    variable. Both by the offset at which Python tells them."""
    kinds, found = bytearray(len(code.co_code) // 2), {}
    begin = None
    for each in dis.get_instructions(code):
        begin = each.offset if begin is None else begin
        operation = each.opname
        if operation == "EXTENDED_ARG":
            continue
        is_fast = "FAST" in operation
        if operation.startswith(("STORE_", "DELETE_")) and not is_fast:
            kinds[begin // 2] = extension.module().ends
        elif not operation.startswith(_COMPUTES):
            kinds[begin // 2] = extension.module().pauses
        is_access = operation.startswith(("LOAD_", "STORE_", "DELETE_", "IMPORT_FROM")) and not is_fast
        if is_access and isinstance(each.argval, str) and operation != "LOAD_CONST":
            found[begin] = operation, each.argval
        begin = None
    return bytes(kinds), found
