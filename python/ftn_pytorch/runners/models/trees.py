# SPDX-License-Identifier: MIT
"""Inputs and results of torch.export: containers as trees, and their leaves in a row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import FtnPytorchError
from ...system import private_names
from .input_specs import Input, arrange

CONTAINERS = (
    None,
    "builtins.tuple",
    "builtins.list",
    "builtins.dict",
    "collections.OrderedDict",
    "collections.namedtuple",
    "collections.deque",
)
"""What torch calls those of Python in a description; None is a leaf."""


def by_fields(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """A description of containers in which a class of records is a dict of its fields, in the same order.

    So are results of transformers and diffusers. Nothing is imported for it. What is no such class stays as it is.
    """
    children = [by_fields(child) for child in description["children_spec"]]
    found = {**description, "children_spec": children}
    names = [] if found["type"] in CONTAINERS else _fields(found["context"])
    if len(names) == len(children) > 0:
        found |= {"type": "builtins.dict", "context": json.dumps(names)}
    return found


def _fields(context: str | None) -> list[str]:
    """Names of the fields that a class has told torch, empty if it has told something else."""
    told = json.loads(context or "null")
    if isinstance(told, list) and len(told) == 2 and all(isinstance(each, list) for each in told):
        told = told[0]  # of register_dataclass: fields, and those that were None
    is_fine = isinstance(told, list) and all(isinstance(name, str) and name.isidentifier() for name in told)
    return told if is_fine and len(set(told)) == len(told) else []


class Tree:
    """How a program of torch.export takes its inputs.

    Fortran passes arrays, by position or by name. They are the arguments of the program; the entries of a dictionary
    that is an argument are inputs of their names, those of a list or tuple are inputs without names.
    """

    def __init__(self, spec: Any, names: Sequence[str], path: str) -> None:
        """``spec``: tree of (arguments, keyword arguments). ``names``: of the positional arguments, as far as known."""
        self._spec = spec
        positional, keywords = spec.children()
        children = positional.children()
        leaves: list[str | None] = []
        self.is_plain = not keywords.children()
        """Arguments are tensors, none is a container or known by its name alone."""
        for place, child in enumerate(children):
            if child.is_leaf():
                leaves.append(names[place] if place < len(names) else None)
                continue
            self.is_plain = False
            if not all(each.is_leaf() for each in child.children()):
                raise FtnPytorchError(
                    "FORMAT",
                    f"{path} takes containers inside containers, which Fortran cannot pass; export it with tensors",
                )
            leaves += [str(key) for key in child.context] if child.type is dict else [None] * len(child.children())
        leaves += [str(key) for key in keywords.context or ()]
        if len(leaves) != spec.num_leaves or len({*filter(None, leaves)}) < sum(name is not None for name in leaves):
            raise FtnPytorchError(
                "FORMAT", f"{path} has inputs that Fortran cannot tell apart; export it with tensors of different names"
            )
        self.names = leaves

    def flat(self, args: Sequence[Any], named: Mapping[str, Any], where: str) -> list[Any]:
        """All values in a row; SIGNATURE if they are not those of the program."""
        return arrange([Input(name) for name in self.names], args, named, where)

    def arguments(self, flat: Sequence[Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Positional and keyword arguments of the program from values in a row."""
        return private_names.tree_unflatten()(list(flat), self._spec)
