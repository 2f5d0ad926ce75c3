# SPDX-License-Identifier: MIT
"""Putting trees back into live values, all of them or none.

Tensors, arrays, lists, dicts and objects are changed in place wherever that is possible, so that whoever refers to
them, such as an optimizer to its parameters, sees what was restored. Numbers and texts can only be bound again.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import FtnPytorchError
from ..system import private_names
from ..values import contents, is_array, is_tensor, loaded, python_types, random_states, user_objects
from ..values.encoding import (
    CYCLE,
    INSTANCE,
    LABEL,
    OBJECT,
    SAME,
    TAG,
    Decoder,
    FindType,
    Unstorable,
)
from ..values.graph import Graph
from ..values.kinds import ATOMS, kind_of
from . import optimizers
from .capture import WEAK
from .stateful import (
    Access,
    access_to,
    copy_tensor,
    difference,
    holds,
    is_field,
    is_module,
    is_namespace,
    is_optimizer,
    is_repeated,
    is_trainable,
    label_of,
    load_network,
    misfits_of,
    undo_of_network,
)

Rebind = Callable[[Any], None]
Step = Callable[[], Any]
_DICTS = (dict, defaultdict, OrderedDict, Counter)
_DICT_TAGS = ("dict", "OrderedDict", "Counter", "defaultdict")
_FILLED = (dict, list, set, deque)


class Order(enum.IntEnum):
    """Of what is done. Networks and optimizers have been compared with their state, and a copy of it is large. What
    takes a state may draw random numbers, as layers do that are made for it.
    """

    FIRST, VALUES, NETWORKS, FIELDS_OF_STATEFUL, LAST = range(5)


class _Change(NamedTuple):
    order: Order
    held: Callable[[], Any]
    put: Callable[[Any], Any]
    value: Any


class TreeDecoder(Decoder):
    """Makes what only files have that are told against the moment after the load, ``first``."""

    def __init__(self, arrays: Mapping[str, Any], find_type: FindType, first: Graph) -> None:
        super().__init__(arrays, find_type, {name: node.value for name, node in first.named.items()}, first.knows)

    def _tagged(self, tag: str, tree: Mapping[str, Any]) -> Any:
        if tag in ("identity", WEAK):
            return (id if tag == "identity" else weakref.ref)(self.value(tree["of"]))
        if tag == "tensor" and tree.get("gradient", {}).get("at") in self.arrays:
            found = super()._tagged(tag, tree)
            found.grad = self.value(tree["gradient"])
            return found
        if tag == "generator":
            made = random_states.made(tree["type"])
            access_to(made).put(self.value(tree["state"]))  # type: ignore[union-attr]
            return made
        if tag == OBJECT:
            raise Unstorable(f"it holds an object of type {tree['type']}, and here is none in its place")
        return super()._tagged(tag, tree)

    def _can_make(self, kind: Any) -> bool:
        return super()._can_make(kind) or optimizers.is_of_torch(kind)

    def _instance(self, tree: Mapping[str, Any]) -> Any:
        made = super()._instance(tree)
        if is_optimizer(made):
            made.__setstate__({})  # hooks, and what torch puts into the class
        return made


class Restorer:
    """Puts trees back into live values. ``misfits`` says what does not fit; then nothing may be changed.

    ``first``: what was there right after the load, for trees that are told against that.
    """

    def __init__(self, arrays: Mapping[str, Any], find_type: FindType, first: Graph | None = None) -> None:
        self._find_type, self.first = find_type, Graph({}) if first is None else first
        self._decoder = TreeDecoder(arrays, find_type, self.first)
        self.owners: Mapping[str, Any] = {}
        """Live objects by the names of a file: what optimizers train is in them."""
        self.misfits: list[str] = []
        self.has_other_layers = False
        """Networks get other layers before they get their states."""
        self._changes: list[_Change] = []
        self._taken: dict[int, Any] = {}

    def value_of(self, tree: Any) -> Any:
        return self._decoder.value(tree)

    def add(self, live: Any, tree: Any, path: str, rebind: Rebind | None) -> None:
        """Check one value and note what is to be done. ``rebind`` replaces the value where that is possible."""
        value = self._merged(live, tree, path)
        if value is live:
            return
        if rebind is not None:
            self.change(lambda: live, rebind, value)
        elif is_tensor(live) or is_array(live) or type(live) is not type(value) or live != value:
            self.misfits.append(f"{path} {difference(value, live) or 'cannot be changed in place'}")

    def change(
        self, held: Callable[[], Any], put: Callable[[Any], Any], value: Any, order: Order = Order.VALUES
    ) -> None:
        """Note that ``put`` is to be given a value. ``held`` tells what it must be given for the way back."""
        self._changes.append(_Change(order, held, put, value))

    def run(self) -> None:
        """Put everything back. If an object refuses its state, all get their old one again."""
        done: list[tuple[Callable[[Any], Any], Any]] = []
        try:
            for each in sorted(self._changes, key=lambda each: each.order):
                done.append((each.put, each.held()))
                each.put(each.value)
        except BaseException:
            for put, before in reversed(done):
                # An object that refuses its old state as well must not keep the others from theirs.
                with contextlib.suppress(Exception):
                    put(before)
            raise

    def _add_object(self, live: Any, tree: dict, path: str) -> None:
        access, name = access_to(live), label_of(live)
        if live is None:
            self.misfits.append(f"there is no {path!r} here")
            return
        if access is None or (name != tree["type"] and not is_module(live)):
            self.misfits.append(f"{path} is of type {tree['type']} in the file and {name} here")
            return
        state = self.value_of(tree["state"])
        if is_module(live) and isinstance(state, Mapping):
            # What refuses to load a state refuses it then, and what was loaded before is undone.
            is_known = not (self.has_other_layers or private_names.changes_state_when_loaded(live))
            self.misfits += misfits_of(live.state_dict(), state, path) if is_known else []
            loading = self._loading_of(live, state, tree, path)
            self.change(lambda: undo_of_network(live), _run, loading, Order.NETWORKS)
        elif is_optimizer(live):
            node = self.first.node_of(live)
            here = live.param_groups if node is None else self.first.groups_of(node)
            if "parameters" in tree:
                groups, parameters = self.value_of([tree["groups"], tree["parameters"]])
                here = [{"params": each} for each in parameters]
                regroup = functools.partial(optimizers.regroup, live, groups, parameters)
                self.change(lambda: optimizers.undo_of(live), _run, regroup, Order.NETWORKS)
            elif not self.has_other_layers:
                self.misfits += optimizers.misplaced(here, tree.get("trains", []), self.owners, path)
            self.misfits += optimizers.misfits_of(live, here, state, path)
            loading = functools.partial(optimizers.load, live, access.put, state)
            self.change(lambda: _undo_of_optimizer(live, access), _run, loading, Order.NETWORKS)
        else:
            self.change(lambda: _undo_of(access), _run, functools.partial(access.put, state))
        if tree.get("fields"):
            self._add_fields(live, tree["fields"], path)

    def _loading_of(self, live: Any, state: Mapping[str, Any], tree: dict, path: str) -> Callable[[], None]:
        training = tree.get("training", {})
        # Files of before say nothing of these.
        gradients = self._gradients_of(tree["gradients"]) if "gradients" in tree else None
        requires_grad = tree.get("requires_grad", {})
        if not all(map(is_tensor, (gradients or {}).values())):
            raise ValueError(f"{path} has gradients that are no tensors")
        return lambda: load_network(live, state, training, requires_grad, gradients)

    def _gradients_of(self, trees: Mapping[str, Any]) -> dict[str, Any]:
        """Without those whose arrays are not there: a program without Python has taken them away since."""
        return self.value_of({name: tree for name, tree in trees.items() if tree["at"] in self._decoder.arrays})

    def _add_fields(self, live: Any, fields: Mapping[str, Mapping[str, Any]], path: str) -> None:
        layers = dict(live.named_modules()) if is_module(live) else {"": live}
        for name, named in fields.items():
            for key, tree in named.items():
                place = ".".join(filter(None, (path, name, key)))
                if name not in layers or not is_field(layers[name], key):
                    if is_module(live) and private_names.changes_state_when_loaded(live):
                        continue
                    self.misfits.append(f"{place} is in the file, and there is no such field here")
                    continue
                layer, kind = layers[name], kind_of(layers[name])
                rebind = functools.partial(contents.put, layer, kind, key)
                self.add(contents.fields_in(layer, kind).get(key), tree, place, rebind)

    def _merged(self, live: Any, tree: Any, path: str) -> Any:
        """What takes the place of a live value: itself if it can take what the tree holds, or else a new one."""
        if type(live) in ATOMS and type(tree) in ATOMS:
            return tree
        if has_tag(tree, CYCLE):
            return live
        if has_tag(tree, SAME):
            return self.value_of(tree)
        if has_tag(tree, OBJECT):
            self._add_object(live, tree, path)
        label = tree.get(LABEL) if isinstance(tree, dict) and TAG in tree else None
        if label is not None:
            self._decoder.known[label] = live  # what is in it may refer to it
        merged = live if has_tag(tree, OBJECT) else self._filled(live, tree, path)
        if label is not None:
            self._decoder.known[label] = merged
        if merged is not live:
            self._refuse_lost(live, path, difference(merged, live) or "cannot be changed in place")
        return merged

    def _filled(self, live: Any, tree: Any, path: str) -> Any:
        """The same for what is no object with a state, and told nowhere else."""
        tag = tree.get(TAG, "dict") if isinstance(tree, dict) else "list" if isinstance(tree, list) else ""
        kind, items = type(live), tree["items"] if tag == "list" and isinstance(tree, dict) else tree
        if tag == INSTANCE:
            return self._merged_instance(live, tree, path)
        if is_namespace(live) and tag == kind.__name__:
            self._merge_items(vars(live), vars(live), {**tree, TAG: "dict"}, path)
        elif kind is list and tag == "list":
            self._merge_items(live, live, items, path)
        elif kind in _DICTS and tag in _DICT_TAGS and (kind is defaultdict or tag != "defaultdict"):
            self._merge_items(live, live, tree, path)
        elif kind is tuple and tag == "tuple" and "type" not in tree and len(tree["items"]) == len(live):
            merged = self._items(live, tree["items"], path)
            return live if contents.is_same(live, merged) else tuple(merged)
        else:
            return self._replaced(live, tree, path)
        return live

    def _add_gradient(self, live: Any, tree: dict, path: str) -> None:
        named = {"": tree["gradient"]} if "gradient" in tree else {}
        gradient, requires_grad = self._gradients_of(named).get(""), tree.get("grad")
        if gradient is not None and (not is_tensor(gradient) or difference(gradient, live)):
            self.misfits.append(f"the gradient of {path} {difference(gradient, live) or 'is no tensor'}")
            return

        def put(found: tuple[Any, bool]) -> None:
            live.requires_grad_(found[1])
            live.grad = found[0]

        self.change(lambda: (live.grad, live.requires_grad), put, (gradient, bool(requires_grad)))

    def _merged_instance(self, live: Any, tree: dict, path: str) -> Any:
        kind, name = type(live), tree["type"].partition(":")[2]
        if not user_objects.is_plain(kind) or kind.__qualname__ != name:
            return self.value_of(tree)
        before = user_objects.fields(live)
        for name, each in tree["fields"].items():
            self.add(before.get(name), each, f"{path}.{name}", functools.partial(user_objects.set_field, live, name))
        if "content" in tree:
            self._merge_items(live, user_objects.content(live), tree["content"], path)
        return live

    def _merge_items(self, live: Any, before: Any, tree: Any, path: str) -> None:
        """Give a container, with these items before, those that a tree holds."""
        if isinstance(before, list):
            self.fill(live, self._items(before, tree, path))
        elif isinstance(before, dict):
            pairs = {self.value_of(key): each for key, each in tree["items"]} if TAG in tree else tree
            for key in before.keys() - pairs.keys():
                self._refuse_lost(before[key], f"{path}/{key}", "is not in the file")
            merged = [self._merged(before.get(key), each, f"{path}/{key}") for key, each in pairs.items()]
            self.fill(live, [*pairs, *merged])
        else:
            self.fill(live, list(self.value_of(tree)))

    def _items(self, before: Iterable[Any], trees: list, path: str) -> list[Any]:
        live = list(before)
        for index in range(len(trees), len(live)):
            self._refuse_lost(live[index], f"{path}/{index}", "is not in the file")
        live += [None] * (len(trees) - len(live))
        return [self._merged(one, each, f"{path}/{index}") for index, (one, each) in enumerate(zip(live, trees))]

    def _replaced(self, live: Any, tree: Any, path: str) -> Any:
        value = self.value_of(tree)
        if is_tensor(live) or is_array(live):
            taken = self._taken.setdefault(id(live), value)
            if taken is not value:
                # One array under two names; where the file has two values the second name gets an array of its own.
                return live if _is_equal(taken, value) else value
        return live if self.takes(live, value, tree, path) else value

    def takes(self, live: Any, value: Any, tree: Any, path: str) -> bool:
        """Note that a live value gets what another one holds, which is of that tree; false if it cannot."""
        is_of_length = _limit(live) == _limit(value)
        if is_of_length and any(isinstance(live, kind) and isinstance(value, kind) for kind in _FILLED):
            self.fill(live, contents.items_in(value) or [])
            return True
        if (put := in_place(live, value)) is None:
            return False
        self.change(lambda: _copy(live), put, value)
        if is_tensor(live) and live.is_leaf:
            self._add_gradient(live, tree, path)
        return True

    def fill(self, live: Any, items: list[Any]) -> None:
        """Give a container other items, as ``contents.items_in`` tells them."""
        self.change(lambda: contents.items_in(live) or [], functools.partial(contents.refill, live), items)

    def _refuse_lost(self, live: Any, path: str, why: str) -> None:
        """A tensor that is trained must stay itself: its optimizer would go on with what nobody uses any more. So must
        what has a state.
        """
        if holds(live, lambda each: is_trainable(each) or access_to(each) is not None):
            self.misfits.append(f"{path} {why}")


def plain(tree: Any) -> Any:
    """A tree with the states of objects in place of the objects, and texts in place of objects that are not in it."""
    if isinstance(tree, list):
        return [plain(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if has_tag(tree, SAME) and not tree[LABEL].startswith("#"):
        return f"the same as {tree[LABEL]}"
    is_of_torch = has_tag(tree, INSTANCE) and tree["type"].startswith("torch.")
    if tree.get(TAG) in ("gone", "position", CYCLE) or is_of_torch:
        return plain(tree.get("fields", tree.get("at")))
    return tree["state"] if has_tag(tree, OBJECT) else {key: plain(each) for key, each in tree.items()}


def has_tag(tree: Any, tag: str) -> bool:
    return isinstance(tree, dict) and tree.get(TAG) == tag


def _run(step: Step) -> None:
    step()


def _undo_of(access: Access) -> Step:
    try:
        before = copy.deepcopy(access.get())
    except FtnPytorchError:
        # What has lost its state, such as a process that has died, has none to go back to.
        return lambda: None
    return lambda: access.put(before)


def _undo_of_optimizer(optimizer: Any, access: Access) -> Step:
    if type(optimizer).load_state_dict is not loaded("torch").optim.Optimizer.load_state_dict:
        return _undo_of(access)
    return optimizers.undo_of(optimizer)


def in_place(live: Any, value: Any) -> Callable[[Any], Any] | None:
    """How the contents of ``live`` are replaced; None if it is to be bound again."""
    if is_tensor(live):
        fits = is_tensor(value) and not difference(value, live) and not live.is_inference() and is_repeated(value, live)
        return (lambda new: copy_tensor(live, new)) if fits else None
    if is_array(live):
        fits = is_array(value) and live.flags.writeable and not difference(value, live)
        return (lambda new: live.__setitem__(..., new)) if fits else None
    if type(live) in python_types.BUFFERS.values() and type(live) is type(value):
        return functools.partial(python_types.refill, live)
    return None


def _limit(value: Any) -> int | None:
    """How many items a container may have. Asked by its class: objects of users may answer for any name."""
    return value.maxlen if isinstance(value, deque) else None


def _copy(live: Any) -> Any:
    return live.detach().clone() if is_tensor(live) else copy.copy(live)


def _is_equal(one: Any, other: Any) -> bool:
    if difference(one, other):
        return False
    return bool(loaded("torch").equal(one, other)) if is_tensor(one) else one.tobytes() == other.tobytes()
