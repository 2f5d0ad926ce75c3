# SPDX-License-Identifier: MIT
"""Putting back what a file tells against the moment after the load: all else is as it was then."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from ..script.loading import restore_module
from ..values import contents, graph, python_types, user_objects
from ..values.encoding import OBJECT, TAG
from ..values.graph import LAYERS, Node
from ..values.held import EMPTY
from ..values.kinds import Kind
from .comparing import AT, CLASS, GONE, TO, variables_of, was_lazy
from .restoring import Order, Restorer, has_tag
from .stateful import access_to, difference, is_trainable

_CANNOT = "cannot be taken back: start the program again"


class GoingBack(Restorer):
    """A restorer of trees by place; ``first`` is known."""

    def take_back(self, left: frozenset[str], now: graph.Graph) -> None:
        """All is as it was right after the load; the trees that are added then say what is another. ``now``: what the
        names lead to.
        """
        for name, module in self.first.modules.items():
            if sys.modules.get(name) is not module:
                self.change(functools.partial(sys.modules.get, name), functools.partial(restore_module, name), module)
        for name, module in now.modules.items():
            for late in variables_of(module, now) if name not in self.first.modules else ():
                self.misfits.append(f"{late} of a module that a call imported {_CANNOT}")
        for node in self.first.nodes.values():
            if node.key == LAYERS and not contents.is_same(node.items, graph.items_of(node)):
                self.has_other_layers = True
            if node.kind is Kind.OPTIMIZER:
                self._put_attribute(node.value, "param_groups", self.first.lists[id(node.value)])
                self.fill(self.first.lists[id(node.value)], self.first.groups_of(node))
            is_owned = id(node.value) in self.first.owned and node.kind is Kind.CONTAINER
            if node.is_closed or node.keeps_itself or is_owned:
                continue
            if type(node.value) is not node.type and user_objects.is_plain(node.type):
                self._put_attribute(node.value, "__class__", node.type)
            fields, items = self.first.fields_of(node), graph.items_of(node)
            is_lazy = was_lazy(node)
            if not (is_lazy or contents.is_aside(node.value)):
                for key in {**fields, **node.fields}:
                    value = node.fields.get(key, EMPTY)
                    if fields.get(key, EMPTY) is not value and self.first.place(node, key) not in left:
                        self._bind(node, key, value)
            if not (is_lazy or contents.is_same(node.items, items) or self.first.name_of(node) in left):
                self.fill(node.value, node.items or [])
            if isinstance(node.mark, CodeType) and node.value.__code__ != node.mark:
                self._put_attribute(node.value, "__code__", node.mark)
            if node.kind is Kind.UNKNOWN and self.first.name_of(node) not in left:
                self._take_back_mark(node)

    def _take_back_mark(self, node: Node) -> None:
        now = contents.mark_of(node.value, node.kind)
        if now == node.mark or contents.is_aside(node.value):
            return
        name = self.first.name_of(node)
        if type(node.value) in python_types.BUFFERS.values():
            tag, parts = node.mark
            self.takes(node.value, python_types.make(tag, parts, self._find_type), None, name)
        elif isinstance(node.mark, contents.Position) and node.mark.at is not None:
            self.change(node.value.tell, node.value.seek, node.mark.at)
        elif not contents.is_count(node.value):
            self.misfits.append(f"{name} {_CANNOT}")

    def add_change(self, name: str, tree: Any) -> None:
        """Note what is to be done for a place that is another one than right after the load."""
        node, tag = self.first.named.get(name), tree.get(TAG) if isinstance(tree, dict) else None
        is_binding, name = name.endswith(TO), name.removesuffix(TO)
        if name.endswith(CLASS) and (held := self.first.named.get(name.removesuffix(CLASS))) is not None:
            self._put_attribute(held.value, "__class__", self.value_of(tree))
            return
        if tag == OBJECT:
            self._add_object(None if node is None else node.value, tree, name)
        elif node is not None and not is_binding and tag != GONE and node.kind not in (Kind.CONSTANT, Kind.FUNCTION):
            self._add_content(node, tree, name)
        elif (place := self.first.find(name)) is None:
            self.misfits.append(f"there is no {name!r} here")
        else:
            self._bind(*place, EMPTY if tag == GONE else self.value_of(tree))

    def wanted(self, left: frozenset[str]) -> Iterator[str]:
        """What must be in a file: what keeps its state, and tensors that are trained."""
        for name, node in self.first.named.items():
            is_kept = access_to(node.value) is not None or is_trainable(node.value)
            if is_kept and name not in left and not node.is_closed and id(node.value) not in self.first.owned:
                yield name

    def _add_content(self, node: Node, tree: Any, name: str) -> None:
        live = node.value
        if has_tag(tree, AT):
            self.change(live.tell, live.seek, tree["at"])
            return
        if has_tag(tree, "defaultdict"):
            tree = {**tree, TAG: "dict"}
        value = self.value_of(tree)
        if self.takes(live, value, tree, name):
            return
        place = self.first.find(name)  # type: ignore[union-attr]
        # Where other ways lead to it, those would go on to what was there before.
        if is_trainable(live) or node.ways > 1 or place is None or place.key not in place.node.fields:
            self.misfits.append(f"{name} {difference(value, live) or 'cannot be changed in place'}")
        else:
            self._bind(place.node, place.key, value)

    def _bind(self, node: Node, key: Any, value: Any) -> None:
        """Note that a field gets a value, or is taken away where that is EMPTY."""
        order = Order.FIELDS_OF_STATEFUL if node.keeps_itself or node.is_closed else Order.VALUES
        held = functools.partial(_held, node, key)
        self.change(held, functools.partial(contents.put, node.value, node.kind, key), value, order)

    def _put_attribute(self, live: Any, name: str, value: Any) -> None:
        self.change(lambda: getattr(live, name), lambda new: setattr(live, name, new), value)


def _held(node: Node, key: Any) -> Any:
    return contents.fields_in(node.value, node.kind).get(key, EMPTY)
