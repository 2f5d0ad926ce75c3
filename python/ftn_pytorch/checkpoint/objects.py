# SPDX-License-Identifier: MIT
"""Live objects: what they give as their state, and putting a state back, all of it or nothing.

An object has a state if its class has ``state_dict`` and ``load_state_dict`` (modules, optimizers, schedulers,
GradScaler, and whatever a script defines so), or if it is a random generator. Lists, tuples and dicts may hold such
objects. Everything else is a plain value: arrays, lists, dicts, sets and deques are changed in place, so that whoever
refers to them sees the restored contents; numbers and texts can only be bound again.
"""

from __future__ import annotations

import copy
import functools
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import random_states
from ..values import OBJECT, TAG, Encoder, FindType, decode, is_array, is_tensor, loaded

Rebind = Callable[[Any], None]


class Access(NamedTuple):
    """How the state of an object is read and written."""

    get: Callable[[], Any]
    put: Callable[[Any], Any]


def access_to(value: Any) -> Access | None:
    """None for a value without a state of its own."""
    kind = type(value)
    if callable(getattr(kind, "state_dict", None)) and callable(getattr(kind, "load_state_dict", None)):
        return Access(value.state_dict, value.load_state_dict)
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        return Access(value.getstate, value.setstate)
    numpy, torch = loaded("numpy"), loaded("torch")
    if torch is not None and isinstance(value, torch.Generator):
        return Access(
            lambda: random_states.to_bytes(value.get_state()),
            lambda state: value.set_state(random_states.to_tensor(state)),
        )
    if numpy is not None and isinstance(value, numpy.random.RandomState):
        return Access(lambda: value.get_state(legacy=False), value.set_state)
    if numpy is not None and isinstance(value, numpy.random.Generator):
        bits = value.bit_generator
        return Access(lambda: bits.state, lambda state: setattr(bits, "state", state))
    return None


def holds_objects(value: Any) -> bool:
    """True for an object with a state, and for lists, tuples and dicts with one somewhere inside."""
    if isinstance(value, dict):
        return any(map(holds_objects, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(holds_objects, value))
    return access_to(value) is not None


def tree_of(encoder: Encoder, value: Any, path: str) -> Any:
    """The tree of an object with a state, None for other values; what ``Encoder`` calls."""
    access = access_to(value)
    if access is None:
        return None
    tree = {TAG: OBJECT, "type": _label(value), "state": encoder.encode_state(access.get(), path)}
    if _is_module(value):
        # state_dict does not tell, and dropout depends on it.
        tree["training"] = {name: module.training for name, module in value.named_modules()}
    return tree


def _label(value: Any) -> str:
    """Name of a type. Not of its module where that is the script, which may run under another name next time."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return f"{package}.{kind.__qualname__}" if package in ("torch", "numpy") else kind.__qualname__


def _is_module(value: Any) -> bool:
    torch = loaded("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _is_optimizer(value: Any) -> bool:
    torch = loaded("torch")
    return torch is not None and isinstance(value, torch.optim.Optimizer)


class _Step(NamedTuple):
    do: Callable[[], Any]
    prepare_undo: Callable[[], Callable[[], Any]]


class Restorer:
    """Puts trees back into live values. ``misfits`` says what does not fit; then nothing may be changed."""

    def __init__(self, arrays: Mapping[str, Any], find_type: FindType) -> None:
        self._arrays, self._find_type = arrays, find_type
        self.misfits: list[str] = []
        self._first: list[_Step] = []
        self._last: list[Callable[[], Any]] = []

    def value_of(self, tree: Any) -> Any:
        return decode(tree, self._arrays, self._find_type)

    def add(self, live: Any, tree: Any, path: str, rebind: Rebind | None) -> None:
        """Check one value and note what is to be done. ``rebind`` replaces the value where that is possible."""
        if _is_object(tree):
            self._add_object(live, tree, path)
        elif _has_objects(tree):
            self._add_container(live, tree, path)
        else:
            self._add_plain(live, self.value_of(tree), path, rebind)

    def add_action(self, do: Callable[[], Any], prepare_undo: Callable[[], Callable[[], Any]]) -> None:
        self._first.append(_Step(do, prepare_undo))

    def run(self) -> None:
        """Put everything back. If an object refuses its state, those before it get their old one again."""
        undo: list[Callable[[], Any]] = []
        try:
            for step in self._first:
                undo.append(step.prepare_undo())
                step.do()
        except BaseException:
            for back in reversed(undo):
                back()
            raise
        # Modules and optimizers have been compared with their state, they come last and need no copy of the old one.
        for do in self._last:
            do()

    def _add_object(self, live: Any, tree: dict, path: str) -> None:
        access, name = access_to(live), _label(live)
        if access is None or (name != tree["type"] and not _is_module(live)):
            self.misfits.append(f"{path} is of type {tree['type']} in the file and {name} here")
            return
        state = self.value_of(tree["state"])
        if _is_module(live) and isinstance(state, Mapping):
            self._compare_modules(live.state_dict(), state, path)
            self._last.append(lambda: _load_module(live, state, tree.get("training", {})))
        elif _is_optimizer(live):
            self._compare_groups(live.state_dict(), state, path)
            self._last.append(lambda: access.put(state))
        else:
            self.add_action(lambda: access.put(state), lambda: _undo_of(access))

    def _compare_modules(self, ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str) -> None:
        """Compared first: load_state_dict has copied what fits by the time that it finds what does not."""
        missing = [name for name in ours if name not in theirs]
        unexpected = [name for name in theirs if name not in ours]
        for names, what in ((missing, "lacks"), (unexpected, "has no place for")):
            if names:
                who = "the file" if names is missing else "this one"
                self.misfits.append(f"{path}: {who} {what} {_listed(names)}")
        for name in ours:
            if name in theirs and (difference := _difference(theirs[name], ours[name])):
                self.misfits.append(f"{path}/{name} {difference}")

    def _compare_groups(self, ours: Mapping[str, Any], theirs: Any, path: str) -> None:
        here, there = ([len(group["params"]) for group in state["param_groups"]] for state in (ours, theirs))
        if here != there:
            self.misfits.append(f"{path} has groups of {there} parameters in the file and of {here} here")

    def _add_container(self, live: Any, tree: Any, path: str) -> None:
        if isinstance(tree, dict) and (TAG not in tree or tree[TAG] in ("dict", "OrderedDict")):
            pairs = (
                list(tree.items()) if TAG not in tree else [(self.value_of(key), each) for key, each in tree["items"]]
            )
            if not isinstance(live, dict) or set(live) != {key for key, _ in pairs}:
                keys = sorted(map(str, live)) if isinstance(live, dict) else type(live).__qualname__
                self.misfits.append(f"{path} has {_listed([str(key) for key, _ in pairs])} in the file and {keys} here")
                return
            for key, each in pairs:
                self.add(live[key], each, f"{path}/{key}", functools.partial(live.__setitem__, key))
            return
        items = tree if isinstance(tree, list) else tree["items"]
        if not isinstance(live, (list, tuple)) or len(live) != len(items):
            found = len(live) if isinstance(live, (list, tuple)) else type(live).__qualname__
            self.misfits.append(f"{path} has {len(items)} items in the file and {found} here")
            return
        for index, each in enumerate(items):
            rebind = functools.partial(live.__setitem__, index) if isinstance(live, list) else None
            self.add(live[index], each, f"{path}/{index}", rebind)

    def _add_plain(self, live: Any, value: Any, path: str, rebind: Rebind | None) -> None:
        in_place = _in_place(live, value)
        if in_place is not None:
            self.add_action(lambda: in_place(value), lambda: _back_in_place(in_place, live))
        elif rebind is not None:
            self.add_action(lambda: rebind(value), lambda: lambda: rebind(live))
        elif is_tensor(live) or is_array(live) or type(live) is not type(value) or live != value:
            self.misfits.append(f"{path} {_difference(value, live) or 'cannot be changed in place'}")


def plain(tree: Any) -> Any:
    """A tree with the states of objects in place of the objects."""
    if isinstance(tree, list):
        return [plain(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    return tree["state"] if _is_object(tree) else {key: plain(each) for key, each in tree.items()}


def _is_object(tree: Any) -> bool:
    return isinstance(tree, dict) and tree.get(TAG) == OBJECT


def _has_objects(tree: Any) -> bool:
    if isinstance(tree, list):
        return any(map(_has_objects, tree))
    return isinstance(tree, dict) and (_is_object(tree) or any(map(_has_objects, tree.values())))


def _load_module(module: Any, state: Mapping[str, Any], training: Mapping[str, bool]) -> None:
    module.load_state_dict(state)
    for name, each in module.named_modules():
        each.training = training.get(name, each.training)


def _undo_of(access: Access) -> Callable[[], Any]:
    before = copy.deepcopy(access.get())
    return lambda: access.put(before)


def _in_place(live: Any, value: Any) -> Callable[[Any], Any] | None:
    """How the contents of ``live`` are replaced; None if it is to be bound again."""
    if is_tensor(live):
        fits = is_tensor(value) and not _difference(value, live)
        return (lambda new: _copy_tensor(live, new)) if fits else None
    if is_array(live):
        fits = is_array(value) and live.flags.writeable and not _difference(value, live)
        return (lambda new: live.__setitem__(..., new)) if fits else None
    if isinstance(live, deque) and isinstance(value, deque) and live.maxlen == value.maxlen:
        return lambda new: _refill(live, live.extend, new)
    if type(live) in (dict, defaultdict, OrderedDict, Counter, set) and isinstance(value, (dict, set)):
        fits = isinstance(value, set) == isinstance(live, set)
        return (lambda new: _refill(live, live.update, new)) if fits else None
    if type(live) in (list, bytearray) and type(live) is type(value):
        return lambda new: live.__setitem__(slice(None), new)
    return None


def _refill(live: Any, add: Callable[[Any], Any], new: Any) -> None:
    live.clear()
    add(new)


def _back_in_place(in_place: Callable[[Any], Any], live: Any) -> Callable[[], Any]:
    before = live.detach().clone() if is_tensor(live) else copy.copy(live)
    return lambda: in_place(before)


def _copy_tensor(live: Any, new: Any) -> None:
    with loaded("torch").no_grad():
        live.copy_(new)


def _difference(theirs: Any, ours: Any) -> str:
    """How two values differ in what cannot be changed, empty if they do not."""
    if is_tensor(theirs) and is_tensor(ours):
        if loaded("torch").nn.parameter.is_lazy(ours):
            return ""
    elif not (is_array(theirs) and is_array(ours)):
        if isinstance(theirs, deque) and isinstance(ours, deque):
            return f"has maxlen {theirs.maxlen} in the file and {ours.maxlen} here"
        kinds = [type(value).__qualname__ for value in (theirs, ours)]
        return f"is of type {kinds[0]} in the file and {kinds[1]} here" if kinds[0] != kinds[1] else ""
    for what, there, here in (
        ("shape", tuple(theirs.shape), tuple(ours.shape)),
        ("type", theirs.dtype, ours.dtype),
    ):
        if there != here:
            return f"has {what} {there} in the file and {here} here"
    return ""


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
