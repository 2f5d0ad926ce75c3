# SPDX-License-Identifier: MIT
"""What in a script is another than right after the load: trees of that, or why a file would lose it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from ..errors import FtnPytorchError, summary
from ..values import contents, graph, is_array, is_tensor, python_types, user_objects
from ..values.code_names import named_by
from ..values.encoding import TAG, Unstorable
from ..values.graph import Graph, Node
from ..values.held import EMPTY, results_in
from ..values.kinds import ATOMS, Kind, kind_of, qualities
from . import optimizers
from .capture import METHODS, ORDER, Collector
from .stateful import access_to, is_module, is_optimizer, type_of

GONE, AT, TO, CLASS = "gone", "position", " =", " is of"
"""A field that is not there any more, the place in a file that is read, and ends of what a name is
bound to and of the class of an object."""


class Changes(Collector):
    """A collector that tells changes."""

    def changes(self) -> dict[str, Any]:
        """Trees of all that is another than right after the load, and of what always is, by place."""
        found: dict[str, Any] = {}
        before = self._first.settings
        for name, value in self._now.settings.items():
            is_known = name in before or not name.startswith(("os.", "sys."))
            # numpy.nan is not equal to itself
            if is_known and before.get(name) is not value and before.get(name) != value:
                self.lost[name] = "a setting of the process or of a package"
        self._stands_for = dict(self._successors())
        known = [(node, old) for node in self._now.nodes.values() if (old := self._known(node.value))]
        self._renewed = {
            id(node.value)
            for node, old in known
            if old.is_hidden or (contents.is_count(node.value) and node.mark != old.mark)
        }
        methods = [node.value for node, _ in known if isinstance(node.value, METHODS)]
        self._renewed.update(id(each) for each in methods if id(each.__self__) in self._renewed)
        # What keeps its own state comes first: of what it holds the rest is told.
        for node, old in sorted(known, key=lambda each: each[0].is_closed or each[0].keeps_itself):
            name = self._first.name_of(old)
            try:
                if node.is_closed or node.keeps_itself:
                    self._add_closed(node, old, name, found)
                elif not old.is_hidden and name not in self._transient:
                    self._add(node, old, name, found)
            except RecursionError:
                raise Unstorable(f"{name} is nested too deeply") from None
            except (Unstorable, MemoryError, FtnPytorchError):
                raise
            except Exception as failure:  # of a class whose objects cannot be asked
                raise Unstorable(f"{name} cannot be looked at ({summary(failure)})") from failure
        for name, module in self._now.modules.items():
            if self._first.node_of(vars(module)) is not None:
                continue
            if name in self._first.modules:
                raise Unstorable(f"{name} is a module in place of one that had this name")
            for late in variables_of(module, self._now):
                raise Unstorable(f"{late} is in a module that was imported after the load. Import it at the top")
        replaced = {id(each.value) for each in self._stands_for.values()}
        for name, old in self._first.named.items():
            is_kept = access_to(old.value) is not None or old.kind is Kind.TENSOR
            is_there = self._now.node_of(old.value) is not None or id(old.value) in replaced
            if is_kept and not is_there:
                self.left_out[name] = "nothing leads to it"
        return found

    def _known(self, value: Any) -> Node | None:
        return self._stands_for.get(id(value)) or super()._known(value)

    def _successors(self) -> Iterator[tuple[int, Node]]:
        """Networks made after the load in place of one of the same kind, which nothing leads to now: a restart puts
        their state into that. Generators are made again.
        """
        for node in self._now.nodes.values():
            old = self._first.node_of(node.value)
            if old is None or old.is_hidden:
                continue
            pairs = [(each, old.fields.get(key)) for key, each in node.fields.items()]
            if node.items is not None and old.items is not None and len(node.items) == len(old.items):
                pairs += zip(node.items, old.items)
            for value, before in pairs:
                if is_module(value) and type(value) is type(before) and value is not before:
                    yield from self._stand_ins(value, before)

    def _stand_ins(self, value: Any, before: Any) -> Iterator[tuple[int, Node]]:
        if self._now.node_of(before) is not None or self._first.node_of(value) is not None:
            return
        parts = [(list(each.modules()), list(each.parameters())) for each in (value, before)]
        if any(len(one) != len(other) for one, other in zip(*parts)):
            return
        for one, other in zip([*parts[0][0], *parts[0][1]], [*parts[1][0], *parts[1][1]]):
            if (old := self._first.node_of(other)) is not None and type(one) is type(other):
                yield id(one), old

    def _add(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        value = node.value
        # What belongs to something that a call has made is told beside it.
        is_owned = id(value) in self._now.owned and id(value) in self._first.owned
        if node.type is not old.type and old.mark is not None:
            if not (user_objects.is_plain(node.type) and user_objects.is_plain(old.type)):
                raise Unstorable(f"{name} is {type_of(value)}, and was of class {old.type.__qualname__} after the load")
            found[name + CLASS] = self.encode(node.type, name + CLASS)
        if id(value) in self._now.hooks:
            is_used_up = was_lazy(old) and set(map(id, node.items or ())) <= set(map(id, old.items or ()))
            if not (is_used_up or contents.is_same(old.items, node.items)):
                raise Unstorable(f"{name} are other hooks than after the load. Register them at the top of the script")
        elif node.kind in (Kind.TENSOR, Kind.ARRAY):
            if node.mark != old.mark and None not in (node.mark, old.mark):
                what = "shape, type, strides, graph or hooks" if is_tensor(value) else "shape or type"
                raise Unstorable(f"{name} has another {what} than after the load, in place. Make it so at the top")
            self._shared_memory.require_as_before(value, name)
            if not is_owned:
                self._add_numbers(node, old, name, found)
        elif node.kind is Kind.FUNCTION and node.mark != old.mark:
            if isinstance(value, FunctionType):
                raise Unstorable(f"{name} is a function whose __code__ is another one")
            self._add_cached(node, name)
        elif access_to(value) is not None:
            if is_owned:
                self._require_parts(node, old, name)
            else:
                found[name] = self._state_of(node, old, name)
        elif node.kind is Kind.UNKNOWN and id(value) not in self._renewed:
            self._add_unknown(node, old, name, found)
        if not (is_owned and node.kind in (Kind.CONTAINER, Kind.OBJECT)):
            self._add_contents(node, old, name, found)

    def _add_contents(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        for key in {} if was_lazy(old) else {**old.fields, **node.fields}:
            value = node.fields.get(key, EMPTY)
            if value is old.fields.get(key, EMPTY) and not self._is_renewed(value):
                continue
            place = self._first.place(old, key)
            if place in self._transient:
                self.left_out[place] = "transient"
            elif value is EMPTY:
                found[place] = {TAG: GONE}
            elif isinstance(value, ModuleType) or contents.is_aside(value):
                self.left_out[place] = type_of(value)
            else:
                self._add_bound(node, key, place, found)
        if node.items is None or id(node.value) in self._now.hooks:
            return
        if not contents.is_same(old.items, node.items) or any(map(self._is_renewed, node.items)):
            items = user_objects.content(node.value) if user_objects.is_plain(type(node.value)) else node.value
            tree = self.attempt(self._tree, items, name)
            if not isinstance(tree, Unstorable):
                found[name] = tree
            elif _is_cache(node, old):
                self.left_out[name] = type_of(node.value)
            else:
                raise tree
            if isinstance(node.value, set) and not set(map(id, old.items or ())) <= set(map(id, node.items)):
                self.lost[name] = ORDER

    def _add_bound(self, node: Node, key: Any, place: str, found: dict[str, Any]) -> None:
        value = node.fields[key]
        tree = self.attempt(self.encode, value, place)
        if isinstance(tree, Unstorable):
            if not self._is_of_package(node, key, value):
                raise tree
            self.left_out[place] = type_of(value)
            return
        # Under its name stands what was there after the load, which may be somewhere else now.
        found[place + TO if place in self._first.named else place] = tree

    def _is_of_package(self, node: Node, key: Any, value: Any) -> bool:
        """True for what code of a package has put into an object of its own class: it will do so again."""
        if key == "step" and node.kind is Kind.OPTIMIZER and isinstance(value, FunctionType):
            return kind_of(value) is Kind.INSTALLED  # a scheduler counts the steps of its optimizer, for a warning
        if contents.is_variable(node.type):
            return False  # code of the user gives it values
        kind = node.kind not in graph.CODE and not qualities(node.type).is_all_own
        is_made_there = not user_objects.is_own_module(type(value).__module__) and key not in self._now.names
        is_derived = is_tensor(value) and not user_objects.is_own_module(node.type.__module__)
        return kind and is_made_there and (is_derived or not is_tensor(value))

    def _is_renewed(self, value: Any) -> bool:
        """True for what is told anew although it is the same object as before."""
        if type(value) is tuple:
            return bool(self._renewed) and any(map(self._is_renewed, value))
        return id(value) in self._renewed

    def _add_closed(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        """Of an object with a state, and of what only such leads to, what its state leaves out."""
        is_told = not node.is_closed or (not old.is_closed and access_to(node.value) is not None)
        if is_told and not old.is_hidden and name not in self._transient:
            found[name] = self._state_of(node, old, name)
        if not self._is_told_by_user(node):
            return
        mine = self.attempt(self._left_out_of, node, old, name)
        if isinstance(mine, Unstorable):
            self.left_out[name] = "its state_dict leaves it out"
        else:
            found.update(mine)

    def _left_out_of(self, node: Node, old: Node, name: str) -> dict[str, Any]:
        """Trees of what the state of an object, or of what leads to this one, leaves out."""
        mine: dict[str, Any] = {}
        if is_tensor(node.value):
            if contents.memory_of(node.value) not in self._memory:
                self._add_numbers(node, old, name, mine)
        elif not is_array(node.value) and access_to(node.value) is None:
            self._add_contents(node, old, name, mine)
        elif not node.is_closed:
            self._add_contents(node, old, name, mine)
            for key, each in node.fields.items():
                # its state may be put back with another object in this field
                if (other := self._now.node_of(each)) and not other.is_closed and other.kind is not Kind.INSTALLED:
                    mine.setdefault(self._first.place(old, key), self.encode(each, self._first.place(old, key)))
        return mine

    def _is_told_by_user(self, node: Node) -> bool:
        """True for an object with a state of an own class, and for what such leads to."""
        while node.is_closed and node.parent is not None:
            node = node.parent
        return user_objects.is_own_module(node.type.__module__)

    def _state_of(self, node: Node, old: Node, name: str) -> dict[str, Any]:
        is_regrouped = self._require_parts(node, old, name)
        tree = self.with_state(node.value, name)
        return {**tree, **self.groups_of(node.value, name)} if is_regrouped else tree

    def _require_parts(self, node: Node, old: Node, name: str) -> bool:
        """A state only fits into what has the same parts. True for an optimizer that has others, which can be told."""
        if node.kind is Kind.GENERATOR and node.mark != old.mark:
            raise Unstorable(f"{name} has spawned others since the load, which its state does not tell")
        groups = self._first.lists.get(id(node.value))
        if groups is not None and groups is not node.value.param_groups and self._now.node_of(groups) is not None:
            raise Unstorable(f"{name}.param_groups is another list than after the load, which has a name of its own")
        if node.mark == old.mark or None in (node.mark, old.mark):
            return False
        if optimizers.is_its_state(node.value):
            return True
        what = "groups of parameters" if is_optimizer(node.value) else "parameters or buffers"
        raise Unstorable(
            f"{name} has other {what} than after the load, so that its state would not fit into what a restart makes. "
            "Make it so at the top of the script"
        )

    def _add_numbers(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        value = node.value
        if is_tensor(value) and value.is_meta:
            self.left_out[name] = "on the device 'meta', which has no numbers"
            return
        if is_tensor(value):
            found[name] = self._tensor(value, name) if self._is_plain_tensor(value, name) else None
        elif not self._shared_memory.is_window(value):
            found[name] = self._array_in_place(value, name)

    def _add_cached(self, node: Node, name: str) -> None:
        """What functools.lru_cache keeps is computed again, which gives another object."""
        computed = (Kind.CONSTANT, Kind.TENSOR, Kind.ARRAY, *graph.CODE)
        own = set(map(id, vars(node.value).values()))
        if not all(id(each) in own or kind_of(each) in computed for each in results_in(node.value)):
            raise Unstorable(f"{name} keeps results (functools.lru_cache) that can change")
        if node.mark.currsize:
            self.lost[name] = "a function that keeps its results (functools.lru_cache)"

    def _add_unknown(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        value = node.value
        if contents.is_aside(value):
            if isinstance(value, io.IOBase) and not value.closed and value.readable():
                self.lost[name] = "a file that is read and written"
            return
        if node.mark == old.mark:
            if node.mark is None or type(node.mark) is dict:
                self.lost[name] = f"{type_of(value)}, of which nothing tells whether it has changed"
        elif type(value) in python_types.BUFFERS.values():
            found[name] = self._tree(value, name)
        elif isinstance(node.mark, contents.Position) and node.mark.at is not None:
            found[name] = {TAG: AT, "at": node.mark.at}
        else:
            raise Unstorable(f"{name} is of type {node.type.__module__}.{node.type.__qualname__}")


def variables_of(module: ModuleType, now: Graph) -> Iterator[str]:
    """What a module of the user may hold that it did not hold at first: all but code, and constants that stay."""
    codes = [node.value.__code__ for node in now.nodes.values() if isinstance(node.value, FunctionType)]
    stored = {name for code in codes for name in named_by(code, "STORE_GLOBAL", "STORE_ATTR")}
    for name, value in contents.fields_in(vars(module), Kind.NAMESPACE).items():
        is_fixed = kind_of(value) in graph.CODE or (kind_of(value) is Kind.CONSTANT and name not in stored)
        if not (is_fixed or contents.is_aside(value)):
            yield f"{module.__name__}.{name}"


def was_lazy(node: Node) -> bool:
    """True for a network without parameters yet, and for its hooks, which give it them in its first call."""
    above = node.parent if node.kind is Kind.CONTAINER and node.key.startswith(".(hooks") else node
    return above is not None and above.kind is Kind.MODULE and above.mark is None


def _is_cache(node: Node, old: Node) -> bool:
    """True for a dict of an object of a package in which new objects of this package are, which makes them again."""
    above, known = node.parent, set(map(id, old.items or ()))
    if above is None or not isinstance(node.value, dict) or node.key[1:] not in above.fields:
        return False
    new = [each for each in node.items or () if id(each) not in known and type(each) not in ATOMS]
    if any(kind_of(each) in graph.CODE for each in new):  # such as weak references to what is the user's
        return False
    packages = {each.__module__.partition(".")[0] for each in (above.type, *map(type, new))}
    return len(packages) == 1 and not user_objects.is_own_module(above.type.__module__)
