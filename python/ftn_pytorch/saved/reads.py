# SPDX-License-Identifier: MIT
"""What recordings have read of a state as constants, and where that stands in the text of a state.

In a script a recording holds while all that was read is the same. A program without Python compares these places when
it goes on from a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

from ..checkpoint.capture import Collector
from ..checkpoint.comparing import TO
from ..checkpoint.content import texts_in
from ..checkpoint.optimizers import is_of_torch
from ..checkpoint.stateful import is_module
from ..recording.binding import ABSENT, ANYTHING, CELL, ITEM, ITEMS, SLOT, Binding
from ..recording.operations import address_of
from ..recording.places import Place
from ..recording.tape import Tape
from ..system import extension
from ..values import is_tensor
from ..values.contents import IN
from ..values.encoding import INSTANCE, SAME, TAG
from ..values.graph import Node
from ..values.held import dict_of_class, fields_of
from ..values.kinds import Kind, is_simple, kind_of

Way = list[str]
"""Keys of objects as the text has them, and numbers of items."""


def of(tapes: Iterable[Tape], encoder: Collector, state: dict[str, Any]) -> list[tuple[str, Way, bool]]:
    """Names of these values for a message, the ways to them, and whether nothing means the same there. What is another
    one now than in a recording is none: such a recording is saved as it was made. Nor is what it sets itself.
    """
    tapes = list(tapes)
    places = _Places(encoder, state["objects"])
    found: dict[tuple[str, ...], str] = {}
    for tape in tapes:
        left = {(id(each.holder), each.key) for each, _ in tape.left if isinstance(each, Place)}
        left |= {(id(fields_of(each)), "training") for each in tape.gives_modes}
        for binding in tape.bindings:
            if extension.module().first_change([binding]) < 0:
                for what, way in places.of_binding(binding, left):
                    found.setdefault(tuple(way), what)
        for (tensor,) in tape.memory:
            for what, way in places.of_tensor(tensor):
                found.setdefault(tuple(way), what)
    memory = {address_of(tensor) for tape in tapes for _, tensor in tape.constants} - {0}
    used = {name for name, each in encoder.arrays.items() if is_tensor(each) and address_of(each) in memory}
    for way in _keys(state["objects"], _way("objects"), used):
        found.setdefault(tuple(way), f"a key in {json.loads(way[2])}")
    return [(what, list(way), way in places.may_lack) for way, what in found.items()]


def _keys(tree: Any, way: Way, used: set[str]) -> Iterator[Way]:
    """Ways to the keys of a dict that are no text, if they have arrays that are used, whose names are numbers."""
    is_pair = isinstance(tree, list) and len(tree) == 2 and isinstance(tree[0], dict) and TAG in tree[0]
    if is_pair and not used.isdisjoint(texts_in(tree[1], "at")):
        yield [*way, "0"]
    for step, each in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from _keys(each, [*way, json.dumps(step)], used)


class _Places:
    def __init__(self, encoder: Collector, objects: dict[str, Any]) -> None:
        self._objects, self._first = objects, encoder._first
        self._ways: dict[int, dict[Any, tuple[str, Way]]] = {}
        """Of values that stand within the state of an object, by what holds them."""
        self._tensors: dict[int, tuple[str, Way]] = {}
        self._nodes: dict[int, Node] = {}
        self._cells: dict[int, tuple[Node, Any]] = {}
        self.may_lack: set[tuple[str, ...]] = set()
        for path, each in encoder._objects.items():
            if is_module(each):
                self._note_network(path, each)
        for path, each in encoder.optimizers().items():
            self._note_optimizer(path, each)
        for node in self._first.nodes.values():
            self._note(node)

    def of_binding(self, binding: Binding, left: set[tuple[int, Any]]) -> Iterator[tuple[str, Way]]:
        kind, holder, key, value, path = binding
        if kind in (ITEM, SLOT, CELL, ABSENT) and (id(holder), key) not in left:
            yield from self._of_item(holder, key, value, path)
        elif kind == ITEMS and issubclass(key, dict) and (id(holder) in self._nodes or id(holder) in self._ways):
            for name, each in zip(value[::2], value[1::2]):
                if each is not ANYTHING and (id(holder), name) not in left:
                    yield from self._of_item(holder, name, each, f"{path}{name}" if path.endswith(".") else path)
        elif kind == ITEMS and (node := self._first.node_of(holder)) is not None:
            name = self._first.name_of(node)
            if self._is_comparable(name):
                yield path, _way("objects", name)

    def of_tensor(self, tensor: Any) -> Iterator[tuple[str, Way]]:
        if id(tensor) in self._tensors:
            yield self._tensors[id(tensor)]

    def _of_item(self, holder: Any, key: Any, value: Any, path: str) -> Iterator[tuple[str, Way]]:
        if key in (ways := self._ways.get(id(holder), {})):
            yield ways[key]
            return
        node = self._nodes.get(id(holder))
        if id(holder) in self._cells:
            node, key = self._cells[id(holder)]
        if node is None or not isinstance(key, (str, tuple)):
            return
        name = self._first.place(node, key)
        # Under its own name stands what is in an object, and not which one it is.
        name = name + TO if name in self._first.named else name
        if kind_of(value) is Kind.CONSTANT or self._is_comparable(name):
            yield path, _way("objects", name)

    def _is_comparable(self, name: str) -> bool:
        """Nothing has changed there since the load, or it is an object of the load: no numbers that are arrays."""
        tree = self._objects.get(name)
        return tree is None or (isinstance(tree, dict) and tree.get(TAG) == SAME)

    def _note(self, node: Node) -> None:
        value = node.value
        for holder in (value, fields_of(value), dict_of_class(value) if node.kind is Kind.CLASS else value):
            if holder is value or holder:
                self._nodes.setdefault(id(holder), node)
        if isinstance(value, FunctionType):
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
                self._cells.setdefault(id(cell), (node, (IN, name)))

    def _note_network(self, path: str, network: Any) -> None:
        for name, layer in network.named_modules():
            what = ".".join(filter(None, (path, name, "training")))
            self._ways.setdefault(id(fields_of(layer)), {})["training"] = what, _way("objects", path, "training", name)
        for name, each in network.named_parameters():
            what = f"{path}.{name}.requires_grad"
            self._tensors.setdefault(id(each), (what, _way("objects", path, "requires_grad", name)))

    def _note_optimizer(self, path: str, optimizer: Any) -> None:
        whole = self._objects.get(path, {})
        within = "fields" if whole.get(TAG) == INSTANCE else "state"
        trees = whole.get(within, {}).get("param_groups")
        if not isinstance(trees, list):
            return
        lacking = _given_by_torch(optimizer)
        for number, (group, tree) in enumerate(zip(optimizer.param_groups, trees)):
            for key in () if TAG in tree else group:
                what = f"{path}.param_groups[{number}][{key!r}]"
                way = [*_way("objects", path, within, "param_groups"), str(number), json.dumps(key)]
                if key == "params" and within == "state":
                    way = _way("objects", path, "trains")  # there they are numbers
                self._ways.setdefault(id(group), {})[key] = what, way
                if key == "params" or (is_simple(group[key]) and lacking.get(key, ANYTHING) == group[key]):
                    self.may_lack.add(tuple(way))


def _given_by_torch(optimizer: Any) -> dict[str, Any]:
    """What torch puts into a group that an earlier version has written, which lacks it."""
    if not is_of_torch(type(optimizer)):
        return {}
    bare = object.__new__(type(optimizer))
    bare.__setstate__({"state": {}, "param_groups": [{"params": []}], "defaults": dict(optimizer.defaults)})
    return bare.param_groups[0]


def _way(*keys: str) -> Way:
    """From the text, which is a list of the state and its arrays, to what these keys lead to."""
    return ["0", *map(json.dumps, keys)]
