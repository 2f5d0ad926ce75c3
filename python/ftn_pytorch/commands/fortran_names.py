# SPDX-License-Identifier: MIT
"""What the names in Fortran sources are, as far as the declarations of the files at hand say.

Read by tree-sitter, which passes over what it does not understand: dialects and preprocessor lines cost a declaration,
not a file. Names are in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

Node = Any  # tree_sitter.Node


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Intrinsic functions, by the rank of their results: that of the arguments, an array, a scalar unless a dimension is
# named, a scalar. Those that would need more to tell are not listed.
ELEMENTAL = _words("""
    abs acos acosh adjustl adjustr aimag aint anint asin asinh atan atan2 atanh ceiling char cmplx conjg cos cosh dble
    dim dprod erf erfc exp exponent float floor fraction gamma iand ibclr ibset ichar ieor int ior ishft log log10
    log_gamma logical max merge min mod modulo nearest nint not real scale sign sin sinh sqrt tan tanh trim""")
TRANSFORMATIONAL = _words("cshift eoshift matmul pack reshape shape spread transfer transpose unpack")
REDUCTIONS = _words("all any count iall iany iparity maxval minval norm2 parity product sum")
SCALARS = _words("""
    command_argument_count dot_product epsilon huge index kind len len_trim maxexponent minexponent precision range rank
    scan size storage_size tiny verify""")
INTRINSICS = ELEMENTAL | TRANSFORMATIONAL | REDUCTIONS | SCALARS

_LITERALS = frozenset(
    ("number_literal", "string_literal", "boolean_literal", "complex_literal", "null_literal", "hollerith_constant")
)
_UNITS = frozenset(("module", "submodule", "program", "function", "subroutine", "module_procedure", "block_construct"))
_NOTES = frozenset(("comment", "preproc_comment"))


@dataclass(frozen=True)
class Name:
    """What a name is declared as. A component has the rank and class of itself, not of what it is part of."""

    is_array: bool = False
    is_function: bool = False
    is_class: bool = False
    is_text: bool = False
    is_deferred: bool = False  # allocatable or a pointer
    type: str = ""  # derived type


@dataclass
class Scope:
    """Declarations of a program unit, and the units around it and behind its ``use``."""

    parent: Scope | None = None
    names: dict[str, Name] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)


@dataclass
class Type:
    """Components and procedures of a derived type."""

    base: str
    members: dict[str, Name] = field(default_factory=dict)


def text(node: Node) -> str:
    """Source of a node in lower case."""
    return node.text.decode(errors="replace").lower()


def parts(node: Node) -> list[Node]:
    """Children that mean something."""
    return [child for child in node.named_children if child.type not in _NOTES]


def arguments(call: Node) -> list[Node]:
    """Actual arguments of a call or subscripts of an array."""
    lists = [child for child in call.named_children if child.type == "argument_list"]
    return parts(lists[-1]) if lists else []


class Sources:
    """Declarations of several files."""

    def __init__(self) -> None:
        self.scopes: dict[int, Scope] = {}  # of nodes, by identity
        self.modules: dict[str, Scope] = {}
        self.types: dict[str, Type] = {}

    # ---- reading declarations ----

    def add(self, root: Node) -> None:
        """Read the declarations of a file. Its tree must live as long as this object."""
        self.scopes[root.id] = Scope()
        self._read(root, self.scopes[root.id])

    def _read(self, node: Node, scope: Scope) -> None:
        for child in node.named_children:
            if child.type in _UNITS:
                inner = self.scopes[child.id] = Scope(scope)
                self._read(child, inner)
                self._name_unit(child, scope, inner)
            elif child.type == "use_statement":
                scope.used += [text(part) for part in parts(child) if part.type == "module_name"]
            elif child.type in ("variable_declaration", "variable_modification"):
                scope.names.update(_declared(child, scope.names))
            elif child.type == "derived_type_definition":
                self._add_type(child)
            elif child.type == "interface_statement":
                scope.names.update((text(name), Name(is_function=True)) for name in child.named_children)
            else:
                self._read(child, scope)

    def _name_unit(self, node: Node, scope: Scope, inner: Scope) -> None:
        statement = node.named_children[0]
        names = [text(part) for part in statement.named_children if part.type == "name"]
        if not names:
            return
        if node.type in ("module", "submodule"):
            self.modules[names[0]] = inner
            inner.used += [text(part) for part in statement.named_children if part.type == "module_name"]
        elif node.type == "function":
            scope.names[names[0]] = Name(is_function=True)

    def _add_type(self, node: Node) -> None:
        statement = node.named_children[0]
        base, name = "", ""
        for part in statement.named_children:
            if part.type == "base_type_specifier":
                base = text(part.named_children[0])
            elif part.type == "type_name":
                name = text(part)
        type_ = self.types[name] = Type(base)
        for child in node.named_children:
            if child.type == "variable_declaration":
                type_.members.update(_declared(child, {}))
            elif child.type == "derived_type_procedures":
                for method in _descendants(child, "method_name"):
                    type_.members[text(method)] = Name(is_function=True)

    # ---- asking ----

    def find(self, name: str, scope: Scope | None) -> Name | None:
        """The declaration of a name as it is seen in a scope, if one of the files has it."""
        while scope is not None:
            found = scope.names.get(name) or self._imported(name, scope, set())
            if found:
                return found
            scope = scope.parent
        return None

    def _imported(self, name: str, scope: Scope, seen: set[str]) -> Name | None:
        for module in scope.used:
            if module in self.modules and module not in seen:
                seen.add(module)
                there = self.modules[module]
                found = there.names.get(name) or self._imported(name, there, seen)
                if found:
                    return found
        return None

    def declared(self, node: Node, scope: Scope) -> Name | None:
        """What the last part of a designator is declared as, without its subscripts."""
        if node.type == "identifier":
            return self.find(text(node), scope)
        if node.type == "call_expression":
            return self.declared(node.named_children[0], scope)
        if node.type == "derived_type_member_expression":
            whole = self.declared(parts(node)[0], scope)
            return self._member(whole.type, text(parts(node)[-1])) if whole else None
        return None

    def _member(self, type_name: str, member: str) -> Name | None:
        seen: set[str] = set()  # two modules may have types of one name, and one extend the other
        while type_name in self.types and type_name not in seen:
            seen.add(type_name)
            if member in self.types[type_name].members:
                return self.types[type_name].members[member]
            type_name = self.types[type_name].base
        return None

    def is_function(self, call: Node, scope: Scope) -> bool:
        """A reference of a function, and not an element, a section or a substring, as far as is known."""
        callee = call.named_children[0]
        name = self.declared(callee, scope)
        if name is not None:
            return name.is_function or not (name.is_array or name.is_text)
        sections = any(argument.type == "extent_specifier" for argument in arguments(call))
        return callee.type == "identifier" and text(callee) in INTRINSICS and not sections

    def is_array(self, node: Node, scope: Scope) -> bool | None:
        """Does an expression have axes? None if the files do not say."""
        if node.type in _LITERALS:
            return False
        if node.type == "array_literal":
            return True
        if node.type == "identifier":
            name = self.find(text(node), scope)
            return None if name is None or name.is_function else name.is_array
        if node.type == "derived_type_member_expression":
            name = self.declared(node, scope)
            return _either(self.is_array(parts(node)[0], scope), None if name is None else name.is_array)
        if node.type == "call_expression":
            return self._is_array_call(node, scope)
        if any(child.type == "user_defined_operator" for child in node.named_children):
            return None
        return _either(*(self.is_array(child, scope) for child in parts(node)))

    def _is_array_call(self, node: Node, scope: Scope) -> bool | None:
        callee, given = node.named_children[0], arguments(node)
        if self.is_function(node, scope):
            called = text(callee)
            if self.declared(callee, scope):
                return None
            if called in ELEMENTAL:
                return _either(*(self.is_array(each, scope) for each in given if each.type != "keyword_argument"))
            if called in TRANSFORMATIONAL:
                return True
            return False if called in SCALARS or len(given) == 1 else None
        name = self.declared(callee, scope)
        outer = self.is_array(parts(callee)[0], scope) if callee.type == "derived_type_member_expression" else False
        if any(each.type == "extent_specifier" for each in given):
            return outer if name is not None and name.is_text and not name.is_array else True
        return None if name is None else _either(outer, *(self.is_array(each, scope) for each in given))

    def array_part(self, node: Node, scope: Scope) -> Name | None:
        """The part of a designator that has the axes: ``c`` of ``c(:)%t``."""
        if node.type == "derived_type_member_expression":
            found = self.array_part(parts(node)[0], scope)
            if found is not None:
                return found
        callee = node.named_children[0] if node.type == "call_expression" else node
        if callee is not node and callee.type == "derived_type_member_expression":
            found = self.array_part(parts(callee)[0], scope)
            if found is not None:
                return found
        return self.declared(callee, scope) if self.is_array(node, scope) else None

    def moved_whole(self, component: Node, scope: Scope) -> Node | None:
        """The part ``cells`` of ``cells%t`` where it is a whole array that is allocatable or a pointer."""
        part = parts(component)[0]
        while part.type == "derived_type_member_expression" and self.is_array(parts(part)[0], scope):
            part = parts(part)[0]
        name = None if part.type == "call_expression" else self.declared(part, scope)
        return part if name is not None and name.is_array and name.is_deferred else None

    def inside(self, node: Node, scope: Scope) -> Scope:
        """The scope of the statements in a node."""
        if node.type == "type_statement":
            return self._selected(node, scope)
        if node.type == "associate_statement":
            pairs = [parts(each)[:2] for each in _descendants(node, "association")]
            return Scope(scope, {text(pair[0]): self._alias(pair[-1], scope) for pair in pairs})
        return self.scopes.get(node.id, scope)

    def _alias(self, selected: Node, scope: Scope) -> Name:
        name = self.declared(selected, scope) or Name()
        return replace(name, is_array=self.is_array(selected, scope) is not False)

    def _selected(self, branch: Node, scope: Scope) -> Scope:
        """A branch of ``select type``: its selector has the type of the branch."""
        selector = next((child for child in branch.parent.named_children if child.type == "selector"), branch)
        pair = parts(selector)[:1]
        if pair and pair[0].type == "pointer_association_statement":
            pair = parts(pair[0])[:2]
        if not pair:
            return scope
        name = self._alias(pair[-1], scope)
        if text(branch).startswith("type"):
            name = replace(name, is_class=False)
        types = [text(child) for child in branch.named_children if child.type in ("identifier", "type_name")]
        return Scope(scope, {text(pair[0]): replace(name, type=types[0] if types else name.type)})


def _either(*answers: bool | None) -> bool | None:
    if any(answers):
        return True
    return None if None in answers else False


def _descendants(node: Node, kind: str) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == kind:
            yield child
        yield from _descendants(child, kind)


def _declared(statement: Node, known: dict[str, Name]) -> Iterator[tuple[str, Name]]:
    """Names of a declaration; of ``dimension x(3)`` and its like, which changes a declaration."""
    type_ = statement.child_by_field_name("type")
    attributes = statement.children_by_field_name("attribute")
    words = [text(each) for each in attributes] + [
        text(c) for c in statement.named_children if c.type == "type_qualifier"
    ]
    common = Name(
        is_array=any(word.startswith("dimension") for word in words),
        is_function="external" in words or type_ is not None and text(type_).startswith("procedure"),
        is_class=type_ is not None and text(type_).startswith("class"),
        is_text=type_ is not None and text(type_).startswith("character"),
        is_deferred="allocatable" in words or "pointer" in words,
        type=next((text(each) for each in type_.named_children if each.type == "type_name"), "") if type_ else "",
    )
    for declarator in statement.children_by_field_name("declarator"):
        node = declarator.child_by_field_name("left") or declarator
        is_sized = node.type == "sized_declarator"
        name = text(node.named_children[0] if is_sized else node)
        base = common if type_ is not None else known.get(name, common)
        has_axes = is_sized and any(child.type == "size" for child in node.named_children)
        yield (
            name,
            replace(
                base,
                is_array=base.is_array or common.is_array or has_axes,
                is_function=base.is_function or common.is_function,
                is_deferred=base.is_deferred or common.is_deferred,
            ),
        )
