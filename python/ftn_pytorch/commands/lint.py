# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch lint``: arguments of torch_in and its like that compilers accept and that go wrong."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import FtnPytorchError, missing_package
from .fortran_names import Node, Scope, Sources, arguments, parts, text

REFERRING = ("torch_in", "torch_out")
METHODS = ("from_array", "add_array")


class Finding(NamedTuple):
    """What is wrong in a line, and what to write."""

    file: str
    line: int
    wrong: str
    cure: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.wrong}; {self.cure}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("files", nargs="+", type=Path, help="Fortran sources; those that only declare help, too")


def run(chosen: argparse.Namespace) -> int:
    """Print what is found: 0 nothing, 1 something. ARGUMENT, FILE, IMPORT where nothing can be found."""
    try:
        found = list(findings(chosen.files))
    except ModuleNotFoundError as failure:
        raise missing_package("lint", failure, "tree-sitter", "tree-sitter-fortran") from failure
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{failure.filename} cannot be read: {failure.strerror}") from failure
    for finding in found:
        print(finding)
    return 1 if found else 0


def findings(files: Iterable[Path]) -> Iterator[Finding]:
    """All that is found in the files, which may use each other's modules.

    ModuleNotFoundError: tree-sitter or its Fortran grammar is not installed. OSError: a file cannot be read. ARGUMENT:
    it is a script or a saved model.
    """
    import tree_sitter
    import tree_sitter_fortran

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_fortran.language()))
    trees = [(str(file), parser.parse(_source(Path(file)))) for file in files]
    sources = Sources()
    for _, tree in trees:
        sources.add(tree.root_node)
    for file, tree in trees:
        for line, wrong, cure in _look(tree.root_node, Scope(), sources):
            yield Finding(file, line, wrong, cure)


def _source(file: Path) -> bytes:
    """The parser takes anything, and would find nothing."""
    content = file.read_bytes()
    if file.suffix == ".py" or b"\0" in content:
        raise FtnPytorchError(
            "ARGUMENT",
            f"{file} is no Fortran, and lint reads Fortran sources only. ftn_pytorch check "
            f"{shlex.quote(str(file))} calls the functions of a script, or a saved model, as a Fortran program would",
        )
    return content


def _look(node: Node, scope: Scope, sources: Sources) -> Iterator[tuple[int, str, str]]:
    scope = sources.inside(node, scope)
    called, argument = _described(node)
    if argument is not None:
        found = _check(called, argument, scope, sources)
        if found is not None:
            yield argument.start_point[0] + 1, f"{called} gets {found[0]}", found[1]
    for child in node.named_children:
        yield from _look(child, scope, sources)


def _described(node: Node) -> tuple[str, Node | None]:
    """The procedure that describes an array in this node, and its argument."""
    if node.type == "call_expression":
        called, keyword, place = text(node.named_children[0]), "x", -1
        known = called in (*REFERRING, "torch_copy")
    elif node.type == "subroutine_call" and node.named_children[0].type == "derived_type_member_expression":
        called, keyword, place = text(node.named_children[0].named_children[-1]), "array", 0
        known = called in METHODS
    else:
        return "", None
    given = arguments(node)
    describes_an_address = node.type == "call_expression" and len(given) > 2
    if not known or not given or describes_an_address:
        return called, None
    for each in given:
        if each.type == "keyword_argument" and text(each.child_by_field_name("name")) == keyword:
            return called, each.child_by_field_name("value")
    positional = [each for each in given if each.type != "keyword_argument"]
    return called, positional[place] if positional else None


def _check(called: str, argument: Node, scope: Scope, sources: Sources) -> tuple[str, str] | None:
    """What is wrong with an argument, and what to write in its place."""
    source = " ".join(argument.text.decode(errors="replace").replace("&", " ").split())
    subscripted = _vector_subscript(argument, scope, sources)
    if subscripted is not None:
        return f"{source}, whose subscript {subscripted} is an array: gfortran 12 ends in an internal error", _copied(
            called, f"({source})"
        )
    component = _component(argument)
    whole = None if component is None else sources.array_part(argument, scope)
    if whole is not None and whole.is_class:
        return (
            f"{source}, a component of a class array: gfortran 12 passes the elements of the declared type",
            f"describe it in select type, in a branch `type is`, or {_copied(called, f'({source})')}",
        )
    moved = None if component is None else sources.moved_whole(component, scope)
    if moved is not None and called in (*REFERRING, "torch_copy"):
        part = moved.text.decode(errors="replace")
        return (
            f"{source}, a component of the whole of {part}: gfortran 12 moves the address that {part} has",
            f"write {called}({source.replace(part, f'{part}(:)', 1)}), with a colon for each dimension",
        )
    if called == "torch_copy":
        return None
    kind = _expression(argument, scope, sources)
    if kind is not None:
        return f"{source}, {kind}, which is gone when the call is made", _copied(called, source)
    if called in METHODS and component is not None and sources.is_array(parts(component)[0], scope):
        return f"{source}, of which gfortran passes a copy that is gone when the call is made", (
            f"write {called}(torch_in({source}))"
        )
    return None


def _copied(called: str, source: str) -> str:
    if called == "torch_out":
        return "receive the result in an array of its own"
    return f"write {called}(torch_copy({source}))" if called in METHODS else f"write torch_copy({source})"


def _component(node: Node) -> Node | None:
    """``c%t`` of ``c%t`` and ``c%t(1)``, None for what is no component."""
    while node.type == "call_expression":
        node = node.named_children[0]
    return node if node.type == "derived_type_member_expression" else None


def _expression(node: Node, scope: Scope, sources: Sources) -> str | None:
    """What kind of expression it is, None for variables, and for scalars and texts, which are stored."""
    if node.type in ("identifier", "derived_type_member_expression", "concatenation_expression"):
        return None
    if node.type == "call_expression":
        called = text(node.named_children[0])
        if not sources.is_function(node, scope) or called in (*REFERRING, "torch_copy"):
            return None
    if sources.is_array(node, scope) is False:
        return None
    names = {"call_expression": "the result of a function", "array_literal": "an array constructor"}
    return names.get(node.type, "an expression")


def _vector_subscript(node: Node, scope: Scope, sources: Sources) -> str | None:
    """The first subscript in a designator that is an array."""
    if node.type == "derived_type_member_expression":
        return _vector_subscript(parts(node)[0], scope, sources)
    if node.type != "call_expression" or sources.is_function(node, scope):
        return None
    given = arguments(node)
    callee = node.named_children[0]
    if sources.declared(callee, scope) or any(each.type == "extent_specifier" for each in given):
        for each in given:
            if each.type != "extent_specifier" and sources.is_array(each, scope):
                return each.text.decode(errors="replace")
    return _vector_subscript(callee, scope, sources)
