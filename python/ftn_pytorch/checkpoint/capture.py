# SPDX-License-Identifier: MIT
"""Live values as trees and copies of their arrays, with a record of what is kept, what is not, and why."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from ..values import graph, is_array, is_tensor, loaded, user_objects
from ..values.encoding import CODE, INSTANCE, OBJECT, TAG, Encoder, FindType, Unstorable, find_imported_type
from ..values.graph import Graph, Node
from ..values.kinds import Kind, kind_of, qualities
from ..values.walk import results_in
from . import memory
from .stateful import access_to, is_module, is_optimizer, label_of

GONE, AT, TO = "gone", "position", " ="
_NOTHING = object()


class Collector(Encoder):
    """The trees of live values. ``copies``: arrays are copied, so that nothing changes them before they are written.

    ``now``: what the names lead to. ``first``: what they led to right after the load; what is as it was then is not
    told. None: everything is told. ``transient``: paths of what is left out. ``find_type``: finds classes and functions.
    """

    def __init__(
        self,
        now: Graph,
        first: Graph | None = None,
        copies: bool = True,
        transient: frozenset[str] = frozenset(),
        find_type: FindType = find_imported_type,
    ) -> None:
        super().__init__()
        self.left_out: dict[str, str] = {}
        """What is not kept, and why."""
        self.lost: dict[str, str] = {}
        """The same for what may have had a state, which is worth a warning."""
        self.trees: dict[str, Any] = {}
        """The states of optimizers, by their paths."""
        self._now, self._first, self._transient, self._find_type = now, first, transient, find_type
        self._copies = copies
        self._copied: dict[tuple, Any] = {}
        self._memory: set[int] = set()
        self._objects: dict[str, Any] = {}
        self._labels: dict[int, str] = {}
        self._renewed: set[int] = set()
        self._shared_memory = memory.Shared(now, first)
        self._is_within_state = self._is_replaced = False

    # ---- what is another than after the load

    def changes(self) -> dict[str, Any]:
        """Trees of all that is another than right after the load, and of what always is, by place."""
        assert self._first is not None
        found: dict[str, Any] = {}
        known = [(node, old) for node in self._now.nodes.values() if (old := self._first.node_of(node.value))]
        self._renewed = {
            id(node.value) for node, old in known if old.is_hidden or (graph.is_count(node.value) and node.mark != old.mark)
        }
        # What keeps its own state comes first: of what it holds the rest is told.
        for node, old in sorted(known, key=lambda each: each[0].is_closed or _is_closed(each[0])):
            name = self._first.name_of(old)
            if node.is_closed or _is_closed(node):
                self._add_closed(node, old, name, found)
            elif not old.is_hidden and name not in self._transient:
                self._add(node, old, name, found)
        for name, old in self._first.named.items():
            is_kept = access_to(old.value) is not None or old.kind is Kind.TENSOR
            if is_kept and self._now.node_of(old.value) is None:
                self.left_out[name] = "nothing leads to it"
        return found

    def _add(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        value, is_owned = node.value, id(node.value) in self._now.owned
        if node.type is not old.type and old.mark is not None:
            raise Unstorable(f"{name} is {type_of(value)}, and was of class {old.type.__qualname__} after the load")
        if id(value) in self._now.hooks:
            if not graph.is_same(old.items, node.items):
                raise Unstorable(f"{name} are other hooks than after the load. Register them at the top of the script")
        elif node.kind in (Kind.TENSOR, Kind.ARRAY):
            if node.mark != old.mark and None not in (node.mark, old.mark):
                what = "shape, type, strides, graph or hooks" if is_tensor(value) else "shape or type"
                raise Unstorable(f"{name} has another {what} than after the load, in place. Make it so at the top")
            self._shared_memory.require_as_before(value, name)
            if not is_owned:
                self._add_numbers(node, old, name, found)
        elif node.kind is Kind.FUNCTION and node.mark != old.mark:
            self._add_cached(node, name)
        elif access_to(value) is not None:
            self._require_parts(node, old, name)
            if not is_owned:
                found[name] = self._object(value, access_to(value).get(), name)  # type: ignore[union-attr]
        elif node.kind is Kind.UNKNOWN and id(value) not in self._renewed:
            self._add_unknown(node, old, name, found)
        if not (is_owned and node.kind in (Kind.CONTAINER, Kind.OBJECT)):
            self._add_contents(node, old, name, found)

    def _add_contents(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        assert self._first is not None
        for key in {**old.fields, **node.fields}:
            value = node.fields.get(key, _NOTHING)
            if value is old.fields.get(key, _NOTHING) and not self._is_renewed(value):
                continue
            place = self._first.place(old, key)
            if place in self._transient:
                self.left_out[place] = "transient"
            elif value is _NOTHING:
                found[place] = {TAG: GONE}
            elif isinstance(value, ModuleType) or graph.is_aside(value):
                self.left_out[place] = type_of(value)
            else:
                self._add_bound(node, key, place, found)
        if node.items is None or id(node.value) in self._now.hooks:
            return
        if not graph.is_same(old.items, node.items) or any(map(self._is_renewed, node.items)):
            found[name] = self._contents(node.value, name)

    def _add_bound(self, node: Node, key: Any, place: str, found: dict[str, Any]) -> None:
        assert self._first is not None
        value, arrays = node.fields[key], set(self.arrays)
        try:
            tree = self.encode(value, place)
        except Unstorable:
            if not self._is_of_package(node, key, value):
                raise
            self.forget(arrays)
            self.left_out[place] = type_of(value)
            return
        # Under its name stands what was there after the load, which may be somewhere else now.
        found[place + TO if place in self._first.named else place] = tree

    def _is_of_package(self, node: Node, key: Any, value: Any) -> bool:
        """True for what code of a package has put into an object of its own class: it will do so again."""
        kind = node.kind not in graph.CODE and not qualities(node.type).is_all_own
        is_made_there = not user_objects.is_own_module(type(value).__module__) and key not in self._now.names
        is_derived = is_tensor(value) and not user_objects.is_own_module(node.type.__module__)
        return kind and is_made_there and (is_derived or not is_tensor(value))

    def forget(self, arrays: set[str]) -> None:
        """Of the arrays keep these only."""
        for each in set(self.arrays) - arrays:
            del self.arrays[each]

    def _contents(self, value: Any, name: str) -> Any:
        base = user_objects.content(value) if user_objects.is_plain(type(value)) else None
        try:
            return self._tree(value if base is None else base, name)
        except RecursionError:
            raise Unstorable(f"{name} is nested too deeply") from None

    def _is_renewed(self, value: Any) -> bool:
        """True for what is told anew although it is the same object as before."""
        if type(value) is tuple:
            return bool(self._renewed) and any(map(self._is_renewed, value))
        return id(value) in self._renewed

    def _add_closed(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        """Of an object with a state, and of what only such leads to, what its state leaves out."""
        assert self._first is not None
        if not node.is_closed and not old.is_hidden and name not in self._transient:
            self._require_parts(node, old, name)
            found[name] = self._object(node.value, access_to(node.value).get(), name)  # type: ignore[union-attr]
        if not self._is_told_by_user(node):
            return
        arrays, labels, mine = set(self.arrays), dict(self._labels), dict[str, Any]()
        try:
            if is_tensor(node.value):
                if graph.memory_of(node.value) not in self._memory:
                    self._add_numbers(node, old, name, mine)
            elif not is_array(node.value) and access_to(node.value) is None:
                self._add_contents(node, old, name, mine)
            elif not node.is_closed:
                self._add_contents(node, old, name, mine)
                for key, each in node.fields.items():
                    # its state may be put back with another object in this field
                    if (other := self._now.node_of(each)) and not other.is_closed and other.kind is not Kind.INSTALLED:
                        mine.setdefault(self._first.place(old, key), self.encode(each, self._first.place(old, key)))
        except Unstorable:
            self.left_out[name], self._labels = "its state_dict leaves it out", labels
            self.forget(arrays)
            return
        found.update(mine)

    def _is_told_by_user(self, node: Node) -> bool:
        """True for an object with a state of an own class, and for what such leads to."""
        while node.is_closed and node.parent is not None:
            node = node.parent
        return user_objects.is_own_module(node.type.__module__)

    def _require_parts(self, node: Node, old: Node, name: str) -> None:
        """A state only fits into what has the same parts."""
        if node.kind is Kind.GENERATOR and node.mark != old.mark:
            raise Unstorable(f"{name} has spawned others since the load, which its state does not tell")
        if node.mark != old.mark and None not in (node.mark, old.mark):
            what = "groups of parameters" if is_optimizer(node.value) else "parameters or buffers"
            raise Unstorable(
                f"{name} has other {what} than after the load, so that its state would not fit into what a restart "
                "makes. Make it so at the top of the script"
            )

    def _add_numbers(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        value = node.value
        if is_tensor(value) and value.is_meta:
            self.left_out[name] = "on the device 'meta', which has no numbers"
            return
        if is_tensor(value):
            found[name] = self._tensor(value, name) if self._is_plain_tensor(value, name) else None
        else:
            found[name] = self._array_in_place(value, name)

    def _add_cached(self, node: Node, name: str) -> None:
        """What functools.lru_cache keeps is computed again, which gives another object."""
        if not all(kind_of(each) is Kind.CONSTANT for each in results_in(node.value)):
            raise Unstorable(f"{name} keeps results (functools.lru_cache) that can change")
        if node.mark.currsize:
            self.lost[name] = "a function that keeps its results (functools.lru_cache)"

    def _add_unknown(self, node: Node, old: Node, name: str, found: dict[str, Any]) -> None:
        value = node.value
        if graph.is_aside(value):
            return
        if node.mark == old.mark:
            if node.mark is None and not node.fields:
                self.lost[name] = f"{type_of(value)}, of which nothing tells whether it has changed"
        elif type(value) is bytearray:
            found[name] = self._tree(value, name)
        elif type(node.mark) is tuple and node.mark[1] is not None:
            found[name] = {TAG: AT, "at": node.mark[1]}
        else:
            raise Unstorable(f"{name} is of type {node.type.__module__}.{node.type.__qualname__}")

    def whole(self, value: Any, path: str) -> Any:
        """The tree of an object of the program."""
        return self._object(value, access_to(value).get(), path)  # type: ignore[union-attr]

    def storable(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Trees of what can be kept among the names of a script of which nothing else is known."""
        found = {}
        for name, value in named.items():
            is_code = isinstance(value, (ModuleType, type)) or callable(value) and access_to(value) is None
            if name.startswith("__") or is_code or graph.is_aside(value):
                continue
            arrays = set(self.arrays)
            try:
                found[name] = self.encode(value, name)
            except Unstorable:
                self.left_out[name] = type_of(value)
                self.forget(arrays)
        return found

    # ---- trees

    def encode(self, value: Any, path: str) -> Any:
        """The tree of a value; Unstorable if there is something in it that is not known."""
        try:
            return self._encode(value, path)
        except RecursionError:
            raise Unstorable(f"{path} contains itself, or is nested too deeply") from None

    def encode_state(self, value: Any, path: str) -> Any:
        """The tree of what an object gave as its state, in which there are no more objects with a state."""
        before, self._is_within_state = self._is_within_state, True
        try:
            return self._encode(value, path)
        finally:
            self._is_within_state = before

    def _values(self, values: Any, path: str) -> Any:
        # They are made anew when they are restored.
        before, self._is_replaced = self._is_replaced, True
        try:
            return super()._values(values, path)
        finally:
            self._is_replaced = before

    def _known_as(self, value: Any) -> str | None:
        if self._is_within_state or isinstance(value, (tuple, frozenset)):
            return None
        if id(value) in self._labels:
            return self._labels[id(value)]
        old = self._first.node_of(value) if self._first is not None else None
        if old is None or id(value) in self._renewed or old.is_closed or old.kind is Kind.CONSTANT:
            return None
        return self._first.name_of(old)  # type: ignore[union-attr]

    def _label_of(self, value: Any) -> str | None:
        node = None if self._is_within_state or isinstance(value, tuple) else self._now.node_of(value)
        if node is None or node.ways < 2:
            return None
        self._labels[id(value)] = label = f"#{len(self._labels) + 1}"
        return label

    def _other(self, value: Any, path: str) -> Any:
        access = access_to(value)
        if access is not None:
            if self._first is not None or self._is_within_state or self._is_replaced:
                what = f"{path} is {type_of(value)}"
                raise Unstorable(what if self._first is None or self._is_within_state else f"{what}, made after the load")
            return self._object(value, access.get(), path)
        if user_objects.is_plain(type(value)):
            return self._instance(value, path)
        if user_objects.is_own_code(value):
            return self._code(value, path)
        return None

    def _code(self, value: Any, path: str) -> dict:
        name = user_objects.name_of(value)
        if self._find_type(name) is not value:
            raise Unstorable(f"{path} is the function {value.__qualname__}, and nothing finds it by this name")
        return {TAG: CODE, "name": name}

    def _factory(self, value: defaultdict, path: str) -> Any:
        name = super()._factory(value, path)
        factory: Any = value.default_factory
        if name is not Ellipsis or self._is_within_state:
            # What takes a state_dict has the class that it wants.
            return name
        if user_objects.is_own_code(factory) and self._find_type(user_objects.name_of(factory)) is factory:
            return user_objects.name_of(factory)
        if self._first is not None and self._first.node_of(value) is not None:
            return ""
        raise Unstorable(f"{path} is a defaultdict whose function has no name (write def instead of lambda)")

    def _object(self, value: Any, state: Any, path: str) -> dict:
        self._objects[path] = value
        tree = {TAG: OBJECT, "type": label_of(value), "state": self.encode_state(state, path)}
        if is_optimizer(value):
            self.trees[path] = tree["state"]
        if is_module(value):
            # state_dict does not tell, and dropout depends on it.
            tree["training"] = {name: module.training for name, module in value.named_modules()}
            for name, each in value.named_parameters():
                self._refuse_attributes(each, f"{path}.{name}")
            tree["requires_grad"] = {name: each.requires_grad for name, each in value.named_parameters()}
            tree["gradients"] = {
                name: self._tensor(each.grad, f"{path}/{name} (its gradient)")
                for name, each in value.named_parameters()
                if each.grad is not None
            }
        if self._first is None and (is_module(value) or is_optimizer(value)):
            tree["fields"] = self._fields_of_layers(value, path)
        return tree

    def _fields_of_layers(self, value: Any, path: str) -> dict[str, dict[str, Any]]:
        """Fields of layers of own classes that ``state_dict`` leaves out, as far as they can be kept."""
        found: dict[str, dict[str, Any]] = {}
        for name, layer in value.named_modules() if is_module(value) else [("", value)]:
            node = self._now.node_of(layer)
            is_own = user_objects.is_own_module(type(layer).__module__)
            for key, each in node.fields.items() if node is not None and is_own else ():
                place, arrays = ".".join(filter(None, (path, name, key))), set(self.arrays)
                try:
                    found.setdefault(name, {})[key] = self._encode(each, place)
                except Unstorable:
                    self.left_out[place] = type_of(each)
                    self.forget(arrays)
        return found

    def _instance(self, value: Any, path: str) -> dict:
        if self._find_type(user_objects.name_of(type(value))) is not type(value):
            raise Unstorable(f"{path} is {type_of(value)}, and nothing finds this class by its name")
        named = {}
        for name, each in user_objects.fields(value).items():
            place = f"{path}.{name}"
            if place in self._transient or graph.is_aside(each):
                self.left_out[place] = "transient" if place in self._transient else type_of(each)
            else:
                named[name] = self._encode(each, place)
        content = user_objects.content(value)
        made = {TAG: INSTANCE, "type": user_objects.name_of(type(value)), "fields": named}
        return made if content is None else {**made, "content": self._tree(content, path)}

    def _tensor(self, value: Any, path: str) -> dict:
        self._memory.add(graph.memory_of(value))
        self._refuse_attributes(value, path)
        if not self._is_within_state and (told := self._shared_memory.told(value, path, self._put)) is not None:
            return told
        if value.grad_fn is not None and not self._is_within_state and self._first_graph(value):
            raise Unstorable(f"{path} is a tensor with the graph of how it was computed, which is lost. Detach it")
        tree = super()._tensor(value, path)
        if value.is_leaf and value.grad is not None:
            tree["gradient"] = self._tensor(value.grad, f"{path} (its gradient)")
        return tree

    def _first_graph(self, value: Any) -> bool:
        """True if a tensor has got its graph after the load."""
        return self._first is None or self._first.node_of(value) is None

    def _refuse_attributes(self, tensor: Any, path: str) -> None:
        """Attributes that a script gives to a tensor are not kept where the tensor is made anew."""
        if self._first is None or self._first.node_of(tensor) is None:
            for name in vars(tensor) if hasattr(tensor, "__dict__") else ():
                raise Unstorable(f"{path}.{name} is an attribute of a tensor")

    def _kept(self, array: Any) -> Any:
        if not self._copies:
            return array
        if not is_tensor(array):
            return array.copy()
        if array.layout != loaded("torch").strided:
            return array.clone().cpu()
        # Two names of one tensor, such as tied weights, are one tensor in the file, too.
        key = (array.data_ptr(), array.device, array.dtype, array.shape, array.stride())
        if key not in self._copied:
            self._copied[key] = array.to("cpu", copy=True)
        return self._copied[key]

    # ---- what was met

    def keeps(self, value: Any) -> bool:
        """True for an object with a state that has been met, and for a tensor whose memory has."""
        if is_tensor(value):
            return graph.memory_of(value) in self._memory | {0}
        return any(each is value for each in self._objects.values())

    def optimizers(self) -> dict[str, Any]:
        """Those that have been met, by their paths."""
        return {path: self._objects[path] for path in self.trees}

    def orphans(self) -> Iterator[str]:
        """Tensors that an optimizer changes and that no kept object holds: what they are."""
        for path, optimizer in self._objects.items():
            if is_optimizer(optimizer):
                tensors = [each for group in optimizer.param_groups for each in group["params"]]
                lost = [each for each in tensors if not self.keeps(each)]
                if lost:
                    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
                    yield f"{path} trains {_described(lost[0])}{more}"


def _is_closed(node: Node) -> bool:
    return node.kind not in (Kind.MODULE, Kind.OPTIMIZER) and access_to(node.value) is not None


def type_of(value: Any) -> str:
    return f"of type {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


def _described(tensor: Any) -> str:
    """Shape of a tensor, and its name in the largest module that has it."""
    kind = loaded("torch").nn.Module
    # Not isinstance, which asks objects for their class: some warn when they are asked.
    modules = [each for each in gc.get_objects() if issubclass(type(each), kind)]
    names = [
        (len(name), name, type(module).__name__)
        for module in modules
        for name, each in module.named_parameters()
        if each is tensor
    ]
    text = f"a tensor of shape {tuple(tensor.shape)}"
    return f"{max(names)[1]} of a {max(names)[2]}, {text}" if names else text
