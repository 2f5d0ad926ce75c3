# SPDX-License-Identifier: MIT
"""Live values as trees and copies of their arrays, with a record of what is kept, what is not, and why."""

from __future__ import annotations

import functools
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinMethodType, MethodType, MethodWrapperType, ModuleType
from typing import Any

from ..values import contents, is_tensor, loaded, random_states, user_objects
from ..values.encoding import (
    CODE,
    INSTALLED,
    INSTANCE,
    OBJECT,
    TAG,
    Encoder,
    FindType,
    Unstorable,
)
from ..values.graph import Graph, Node
from ..values.held import fields_of
from ..values.kinds import Kind, kind_of
from ..values.user_objects import find_imported_type
from . import memory, optimizers, stateful
from .stateful import access_to, described, is_as_new, is_module, is_namespace, is_optimizer, label_of, type_of

ORDER = "a set whose order tells what was taken out of it: its items, but not their order"
WEAK = "weak"
"""The tag of a weak reference."""
METHODS = (MethodType, BuiltinMethodType, MethodWrapperType)


class Collector(Encoder):
    """The trees of live values. ``copies``: arrays are copied, so that nothing changes them before they are written.

    ``now``: what the names lead to. ``first``: what they led to right after the load; what is as it was then is not
    told. None: all is told. ``transient``: paths of what is left out. ``find_type``: finds classes and functions.
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
        self.trained: dict[str, list[Any]] = {}
        """What each of them trains, see ``optimizers.note_trained``."""
        self._is_whole, self._first = first is None, Graph({}) if first is None else first
        self._now, self._transient, self._find_type, self._copies = now, transient, find_type, copies
        self._copied: dict[tuple, Any] = {}
        self._memory: dict[int, None] = {}
        self._objects: dict[str, Any] = {}
        self._labels: dict[int, str] = {}
        self._met: tuple[dict[Any, Any], ...] = (self.arrays, self._memory, self._objects, self._labels, self.trees)
        self._stands_for: dict[int, Node] = {}
        """What was made after the load in place of another one."""
        self._renewed: set[int] = set()
        """What is told anew although it is the same object as after the load."""
        self._shared_memory = memory.Shared(now, self._first, self._is_whole)
        self._is_within_state = self._is_replaced = False

    def attempt(self, make: Callable[..., Any], *given: Any) -> Any:
        """What this makes, or why it cannot be kept: then nothing of it has been met."""
        before = list(map(len, self._met))
        try:
            return make(*given)
        except Unstorable as failure:
            for held, count in zip(self._met, before):
                while len(held) > count:
                    held.popitem()
            return failure

    def storable(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Trees of what can be kept among the names of a script of which nothing else is known."""
        found = {}
        for name, value in self._candidates(named):
            tree = self.attempt(self.encode, value, name)
            if not isinstance(tree, Unstorable):
                found[name] = tree
            elif name in named:
                self.left_out[name] = type_of(value)
        return found

    def _candidates(self, named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in named.items():
            is_code = isinstance(value, (ModuleType, type)) or callable(value) and access_to(value) is None
            if not (name.startswith("__") or is_code or contents.is_aside(value)):
                yield name, value
        # What else is always kept, in objects that cannot be, in classes and in closures
        for name, node in self._now.named.items():
            is_kept = is_tensor(node.value) or access_to(node.value) is not None
            if is_kept and not (node.is_closed or id(node.value) in self._now.owned or self.keeps(node.value)):
                yield name, node.value

    # ---- trees

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
        if isinstance(values, (set, frozenset)) and not is_as_new(values):
            self.lost[path] = ORDER
        try:
            return super()._values(values, path)
        finally:
            self._is_replaced = before

    def _known_as(self, value: Any) -> str | None:
        if self._is_within_state or isinstance(value, (tuple, frozenset)):
            return None
        if id(value) in self._labels:
            return self._labels[id(value)]
        old, now = self._known(value), self._now.node_of(value)
        if old is None or id(value) in self._renewed or old.kind is Kind.CONSTANT:
            return None
        if not old.is_closed:
            return self._first.name_of(old)
        if now is not None and not now.is_closed:
            raise Unstorable(
                f"{self._first.name_of(old)} is of an object that keeps its state itself, and a call has made another "
                "way to it. Make this way at the top of the script, or copy it"
            )
        return None

    def _known(self, value: Any) -> Node | None:
        """What an object was right after the load, None for what was not there."""
        return self._first.node_of(value)

    def _label_of(self, value: Any) -> str | None:
        node = None if self._is_within_state or isinstance(value, tuple) else self._now.node_of(value)
        if node is None or node.ways < 2:
            return None
        self._labels[id(value)] = label = f"#{len(self._labels) + 1}"
        return label

    def _other(self, value: Any, path: str) -> Any:
        access = access_to(value)
        if access is not None:
            if (kind := random_states.kind_of_generator(value)) is not None and not self._is_whole:
                bits = getattr(value, "bit_generator", value)
                generators = [each.value for each in self._now.nodes.values() if each.kind is Kind.GENERATOR]
                if any(each is not value and getattr(each, "bit_generator", None) is bits for each in generators):
                    raise Unstorable(f"{path} draws from the bit generator of another generator, since a call")
                return {TAG: "generator", "type": kind, "state": self.encode_state(access.get(), path)}
            if not (self._is_whole or self._is_within_state):
                return self._remade(value, path)
            untold = " that has spawned others, which its state leaves out" if contents.spawned_by(value) else ""
            if self._is_within_state or self._is_replaced or untold:
                raise Unstorable(f"{path} is {type_of(value)}{untold}")
            return self.with_state(value, path)
        if user_objects.is_plain(type(value)):
            return self._instance(value, path)
        if user_objects.is_own_code(value):
            return self._code(value, path)
        if self._is_within_state:
            return None
        return self._instance(value, path) if self._makes_again(value) else self._callable(value, path)

    def _remade(self, value: Any, path: str) -> dict:
        """The tree of an object with a state that a call has made, if a restart can make it of its fields."""
        kind = type(value)
        if optimizers.is_its_state(value):
            self._refuse_kept_elsewhere(value, path)
            # Without the step that a scheduler has wrapped
            fields = {name: each for name, each in vars(value).items() if kind_of(each) is not Kind.INSTALLED}
            tree = self._instance(value, path, fields)
            self._objects[path], self.trees[path] = value, tree["fields"]
            return tree
        if user_objects.is_plain(kind) or (kind_of(value) is Kind.SCHEDULER and optimizers.is_of_torch(kind)):
            return self._instance(value, path)
        raise Unstorable(f"{path} is {type_of(value)}, made after the load")

    def _refuse_kept_elsewhere(self, optimizer: Any, path: str) -> None:
        every = [each for group in optimizer.param_groups for each in group["params"]]
        if any((node := self._known(each)) is not None and node.is_closed for each in every):
            raise Unstorable(f"{path} trains tensors of an object that keeps its state itself, made after the load")

    def groups_of(self, optimizer: Any, path: str) -> dict[str, Any]:
        """The groups of an optimizer and the tensors in them, which a restart finds by their names."""
        self._refuse_kept_elsewhere(optimizer, path)
        groups = self._items(optimizer.param_groups, f"{path}.param_groups")
        return {"groups": groups, "parameters": [self._items(each["params"], path) for each in optimizer.param_groups]}

    def _makes_again(self, value: Any) -> bool:
        """True for an object of a class of a package that the script knows after the load, and that is its fields."""
        kind = type(value)
        is_object = not self._is_whole and kind_of(value) is Kind.OBJECT and not is_namespace(value)
        return is_object and user_objects.is_made_of_fields(kind) and self._first.knows(kind)

    def _callable(self, value: Any, path: str) -> Any:
        """The tree of a function of a package, of one with arguments given beforehand, and of a method."""
        if isinstance(value, functools.partial) and type(value) is functools.partial:
            given = {"args": self._items(list(value.args), path), "keywords": self._mapping(value.keywords, path)}
            return {TAG: "partial", "func": self._encode(value.func, path), **given}
        if type(value) is weakref.ReferenceType and value.__callback__ is None and self._known(value()) is not None:
            return {TAG: WEAK, "of": self._encode(value(), path)}
        owner = getattr(value, "__self__", None)
        if isinstance(value, METHODS) and not isinstance(owner, (ModuleType, type, type(None))):
            name = value.__name__
            if getattr(getattr(type(owner), name, None), "__get__", None) and getattr(owner, name, None) == value:
                return {TAG: "method", "self": self._encode(owner, path), "name": name}
            return None
        known = {getattr(value, name, None) for name in ("__qualname__", "__name__")} & self._now.names
        for module in (getattr(value, "__module__", None), *sorted(self._now.packages)) if callable(value) else ():
            for label in (f"{module}:{name}" for name in known):
                if find_imported_type(label) is value:
                    return {TAG: INSTALLED, "name": label}
        return None

    def _key(self, key: Any, path: str) -> Any:
        """Numbers that are the identity of something are others in another process."""
        node = self._now.nodes.get(key) if type(key) is int else None
        if node is None or self._is_within_state:
            return self._encode(key, path)
        return {TAG: "identity", "of": self._encode(node.value, path)}

    def _mapping(self, value: Mapping, path: str) -> dict:
        if id(value) in self._of_objects and not self._is_within_state:
            raise Unstorable(f"{path} is the __dict__ of an object, under a name of its own since a call")
        return super()._mapping(value, path)

    @functools.cached_property
    def _of_objects(self) -> set[int]:
        """Dicts in which objects have their fields."""
        held = {} if self._is_whole else self._now.nodes
        return {id(fields_of(each.value)) for each in held.values() if each.kind is Kind.OBJECT}

    def _is_found(self, code: Any) -> bool:
        """True for a function or class that a restart finds by its name: it was there after the load."""
        is_there = self._is_whole or self._known(code) is not None
        return is_there and self._find_type(user_objects.name_of(code)) is code

    def _code(self, value: Any, path: str) -> dict:
        name = user_objects.name_of(value)
        if not self._is_found(value):
            what = "class" if isinstance(value, type) else "function"
            raise Unstorable(
                f"{path} is the {what} {value.__qualname__}, and nothing finds it by this name after a load"
            )
        return {TAG: CODE, "name": name}

    def _factory(self, value: defaultdict, path: str) -> Any:
        name = super()._factory(value, path)
        factory: Any = value.default_factory
        # What takes a state_dict has the class that it wants, and what was there after the load has its function.
        if name is not Ellipsis or self._is_within_state or self._known(value) is not None:
            return name
        if user_objects.is_own_code(factory) and self._is_found(factory):
            return user_objects.name_of(factory)
        raise Unstorable(f"{path} is a defaultdict whose function has no name (write def instead of lambda)")

    def with_state(self, value: Any, path: str) -> dict:
        """The tree of what has a state."""
        access: Any = access_to(value)
        if is_optimizer(value):
            self._refuse_shared_state(value, path)
        state = optimizers.state_of(value, path) if is_optimizer(value) else access.get()
        self._objects[path] = value
        tree = {TAG: OBJECT, "type": label_of(value), "state": self.encode_state(state, path)}
        if is_optimizer(value):
            self.trees[path] = tree["state"]
            tree["trains"] = self.trained[path] = []
        if is_module(value):
            # state_dict does not tell, and dropout depends on it.
            tree["training"] = {name: module.training for name, module in value.named_modules()}
            self.lost.update(stateful.lost_of_network(value, path))
            for name, each in (*value.named_parameters(), *value.named_buffers()):
                if isinstance(state, Mapping) and name in state and stateful.repeated(each):
                    raise Unstorable(f"{path}.{name} has elements that are one in memory. Clone it at the top")
            for name, each in value.named_parameters():
                self._refuse_attributes(each, f"{path}.{name}")
            tree["requires_grad"] = {name: each.requires_grad for name, each in value.named_parameters()}
            tree["gradients"] = {
                name: self._tensor(each.grad, f"{path}/{name} (its gradient)")
                for name, each in value.named_parameters()
                if each.grad is not None
            }
        if self._is_whole and (is_module(value) or is_optimizer(value)):
            tree["fields"] = self._fields_of_layers(value, path)
        return tree

    def _refuse_shared_state(self, optimizer: Any, path: str) -> None:
        """A restart makes the state of parameters anew: who else holds it would hold what it was."""
        held = [(optimizer.state, each) for each in optimizer.state.values()]
        moments = [(owner, each) for _, owner in held if type(owner) is dict for each in owner.values()]
        held += [pair for pair in moments if is_tensor(pair[1])]
        for owner, each in held:
            node = self._now.node_of(each)
            if node is not None and (node.ways > 1 or node.parent is None or node.parent.value is not owner):
                raise Unstorable(f"{self._now.path(node)} is part of the state of {path}, which is made again. Copy it")

    def _fields_of_layers(self, value: Any, path: str) -> dict[str, dict[str, Any]]:
        """Fields of layers of own classes that ``state_dict`` leaves out, as far as they can be kept."""
        found: dict[str, dict[str, Any]] = {}
        for name, layer in value.named_modules() if is_module(value) else [("", value)]:
            node = self._now.node_of(layer)
            is_own = user_objects.is_own_module(type(layer).__module__) or contents.is_of_torchscript(layer)
            for key, each in node.fields.items() if node is not None and is_own else ():
                place = ".".join(filter(None, (path, name, key)))
                tree = self.attempt(self._encode, each, place)
                if isinstance(tree, Unstorable):
                    self.left_out[place] = type_of(each)
                else:
                    found.setdefault(name, {})[key] = tree
        return found

    def _instance(self, value: Any, path: str, fields: Mapping[str, Any] | None = None) -> dict:
        is_own = user_objects.is_own_module(type(value).__module__)
        if not self._is_whole and is_own and not self._is_found(type(value)):
            raise Unstorable(f"{path} is {type_of(value)}, and nothing finds this class by its name")
        named = {}
        for name, each in (user_objects.fields(value) if fields is None else fields).items():
            place = f"{path}.{name}"
            if place in self._transient or contents.is_aside(each):
                self.left_out[place] = "transient" if place in self._transient else type_of(each)
            else:
                named[name] = self._encode(each, place)
        content = user_objects.content(value)
        made = {TAG: INSTANCE, "type": user_objects.name_of(type(value)), "fields": named}
        return made if content is None else {**made, "content": self._tree(content, path)}

    def _tensor(self, value: Any, path: str) -> dict:
        self._memory[contents.memory_of(value)] = None
        self._refuse_attributes(value, path)
        if not self._is_within_state and (told := self._shared_memory.told(value, path, self._put)) is not None:
            return told
        if not value.is_leaf and value.retains_grad:
            raise Unstorable(f"{path} is a computed tensor that keeps its gradient")
        if value.grad_fn is not None and not self._is_within_state and self._known(value) is None:
            raise Unstorable(f"{path} is a tensor with the graph of how it was computed, which is lost. Detach it")
        tree = super()._tensor(value, path)
        if value.is_leaf and value.grad is not None:
            tree["gradient"] = self._tensor(value.grad, f"{path} (its gradient)")
        return tree

    def _refuse_attributes(self, tensor: Any, path: str) -> None:
        """Attributes that a script gives to a tensor are not kept where the tensor is made anew."""
        if self._known(tensor) is None:
            for name in vars(tensor) if hasattr(tensor, "__dict__") else ():
                raise Unstorable(f"{path}.{name} is an attribute of a tensor")

    def _array(self, value: Any, path: str) -> dict:
        told = None if self._is_within_state else self._shared_memory.told_of_array(value, path)
        return super()._array(value, path) if told is None else told

    def _kept(self, array: Any) -> Any:
        if not self._copies:
            return array
        if not is_tensor(array):
            return array.copy()
        if array.layout != loaded("torch").strided:
            return array.clone().cpu()
        # Two names of one tensor, such as tied weights, are one tensor in the file, too. It is held beside its copy:
        # one that a state was given for this file alone would leave its memory to the next one.
        key = (array.data_ptr(), array.device, array.dtype, array.shape, array.stride())
        if key not in self._copied:
            self._copied[key] = array, array.to("cpu", copy=True)
        return self._copied[key][1]

    # ---- what was met

    def keeps(self, value: Any) -> bool:
        """True for an object with a state that has been met, and for a tensor whose memory has."""
        if is_tensor(value):
            return (begin := contents.memory_of(value)) == 0 or begin in self._memory
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
                    yield f"{path} trains {described(lost[0])}{more}"
