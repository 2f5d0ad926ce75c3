# SPDX-License-Identifier: MIT
"""How the code of a call uses the numbers, and the lists, that it changes: whether each run can do the same.

A number to which constants are added is added to by each run. What else code makes of it (``step % 100 == 0``) is
computed before each run, and another outcome is another recording. A list must only be appended to. A number that is
taken out of a tensor is free if it is only handed on; all others must be the same in each run.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import torch

from ..system import other_threads
from ..values.held import fields_of, shown
from ..values.walk import WHOLE
from .binding import CELL, SLOT, Binding
from .bindings import Watch
from .flows import HandedOn, Step, computed, is_appended_to, value_added
from .footprints import NOWHERE, Access, Footprints, called_by, expression_at, value_of
from .operations import RECORDING, callers, is_of_library, is_of_package, is_of_user
from .places import Added, Appended, Guard, Place, sum_of
from .reads import BY_TEXT, IN_TEXTS, OF_UNSEEN, Reads
from .recorder import OTHERS, Recorder, Unrecordable, unseen
from .returned import parts

OF_COUNTS = "count in a tensor (n.add_(1)), or outside; what is no tensor must not change in a call"
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_OF_MODES = torch.no_grad()(lambda: None).__code__


class Way(NamedTuple):
    """A name that leads to a list: by itself, or by a key of the dict that is there. Or to a number in a dict."""

    place: Place
    key: Any
    to: Any

    @property
    def path(self) -> str:
        return self.place.path if self.key is None else f"{self.place.path}[{shown(self.key)}]"

    @property
    def is_number(self) -> bool:
        return type(self.to) in (int, float)

    def is_that_of(self, other: Way) -> bool:
        return self.key == other.key and self.place.is_that_of(other.place)

    def now(self) -> Way | None:
        """With what is there now; None if there is nothing like that."""
        found = self.place.get()
        found = found if self.key is None else dict.get(found, self.key) if type(found) is dict else None
        return self._replace(to=found) if type(found) in (list, deque, int, float) else None


@dataclass
class Known:
    """What calls of a function change, as far as attempts to record them have shown."""

    tensors: list[Place] = field(default_factory=list)
    gradients: list[Place] = field(default_factory=list)
    """To which calls add, and which are other ones after some calls. These and the tensors are arguments of a run."""
    numbers: list[Place] = field(default_factory=list)
    ways: list[Way] = field(default_factory=list)
    takes_numbers: bool = False
    """A number is taken out of a tensor."""

    @property
    def given(self) -> tuple[Place, ...]:
        return (*self.tensors, *self.gradients)

    @property
    def lists(self) -> dict[int, Way]:
        """The first way to each list, by the identity of that."""
        return {id(way.to): way for way in reversed(self.ways) if not way.is_number}

    @property
    def paths(self) -> frozenset[str]:
        """Those of the lists, which are not looked into."""
        return frozenset(way.path for way in self.ways if not way.is_number)


@dataclass
class Count:
    """A number in a place: what it was, and what code has done with it."""

    place: Place
    before: Any
    reads: int = 0
    is_written: bool = False
    added: list[int | float | None] = field(default_factory=list)
    """None for what is not known."""
    sums: list[ast.AST] = field(default_factory=list)
    """The statements that have added it."""

    def refusal(self, why: str, is_seen: bool = False) -> Unrecordable:
        """is_seen: all that code of this thread has done with it is known."""
        now = self.place.get()
        text = f"it changes {self.place.path} ({self.before!r} before a call, {now!r} after it){why}"
        return _unless_of_others(text) if is_seen else Unrecordable(text)


class Following:
    """``found`` tells after the call what a run has to do; ``guards`` what must hold before it."""

    def __init__(self, known: Known, recorder: Recorder, told: Reads, function: Any) -> None:
        # the names may have other lists since the last attempt
        known.ways = [now for way in known.ways if (now := way.now()) is not None]
        self.guards: list[Guard] = []
        self.taken = recorder.taken
        self._known, self._told = known, told
        self._outermost = getattr(function, "__func__", function)
        self._obstacle = ""
        self._counts = [Count(place, place.get()) for place in known.numbers]
        self._lengths = {key: len(way.to) for key, way in known.lists.items()}
        self._appended: Counter[int] = Counter()
        """Of lists, by their identity."""
        self._reads: Counter[int] = Counter()
        """Of ways, by the identity of their places."""
        self._nodes: set[ast.AST] = set()
        """Where code has written to these numbers, and appended to these lists."""
        seen = [(each.place, functools.partial(self._see_number, each)) for each in self._counts]
        seen += [(way.place, functools.partial(self._see_way, way)) for way in known.ways]
        self.footprints = Footprints(seen) if seen or known.takes_numbers else None
        """To be entered around the call; None if there is nothing to follow."""
        if self.footprints is not None:
            recorder.chain = self._chain_if_known

    def found(self, watch: Watch) -> list[tuple[Any, Any]]:
        """What a run puts where, with templates of values."""
        if self.footprints is None:
            return []
        if why := self._obstacle or self.footprints.obstacle:
            raise Unrecordable(why)
        paths = (*(place.path for place in self._known.numbers), *sorted(self._known.paths), "numbers")
        self._refuse_texts(watch, BY_TEXT, paths[0])
        for count in self._counts:
            place = count.place
            is_of_code = self._is_of_names(place) or any(fields_of(each) is place.holder for each in watch.functions)
            is_whole = any(self._told.times(place.holder, each) for each in WHOLE)
            is_whole = is_whole or (place.kind == SLOT and watch.asks_descriptors)
            is_of_code = is_of_code and not watch.names & IN_TEXTS
            if not self._are_all(watch, place, count.reads, is_of_code) or is_whole:
                raise Unrecordable(f"it changes {place.path}, and something besides its code reads that")
        for way in self._known.ways:
            place = way.place
            if not self._are_all(watch, place, self._reads[id(place)], _is_of_module(place)):
                raise Unrecordable(f"something besides its code reads {place.path}, in which it changes something")
            if way.key is None:
                watch.bindings.append(Binding(place.kind, place.holder, place.key, way.to, place.path))
        for each in self.taken:
            if each.steps:
                handed_on = HandedOn(self.footprints, self._nodes)
                each.is_free, each.sums = handed_on.holds(each.steps), handed_on.sums
        return [*self._numbers(), *self._lists()]

    def _are_all(self, watch: Watch, place: Place, reads: int, is_of_code: bool) -> bool:
        """Whether code has made all reads of a place. ``is_of_code``: nothing else can, if nobody looks on there."""
        times = self._told.times(place.holder, place.key)
        if times is None:
            self._refuse_texts(watch, OF_UNSEEN, place.path)
        return times == reads or (times is None and is_of_code)

    def _refuse_texts(self, watch: Watch, readers: frozenset[str], path: str) -> None:
        if texts := sorted(readers & watch.names):
            raise Unrecordable(f"it changes {path}, and may read it by its name ({texts[0]})")

    def _is_of_names(self, place: Place) -> bool:
        """Whether code alone reads a number: by a global name, or by the names of a dict."""
        ways = (way for way in self._known.ways if way.is_number)
        return _is_of_module(place) or any(way.place.get() is place.holder for way in ways)

    # ---- numbers in names

    def _see_number(self, count: Count, access: Access) -> None:
        self._nodes.add(access.node)
        count.reads += not access.is_write
        value = value_added(access)
        if access.is_write:
            if value is NOWHERE:
                count.is_written = True
            else:
                count.sums.append(access.syntax.parents[access.node])
                count.added.append(value)
        elif value is NOWHERE:
            if count.is_written or None in count.added:
                self._refuse(f"it reads {count.place.path} after it has changed it")
                return
            assert self.footprints is not None
            found = computed(access, self.footprints.names)
            added = tuple(each for each in count.added if each is not None)
            try:
                value = found.of(sum_of(count.before, added))
            except Exception:  # which the function is about to raise
                self._refuse(f"{found.text} fails")
                return
            self.guards.append(Guard(count.place, type(count.before), added, found.of, value, found.text))

    def _numbers(self) -> Iterator[tuple[Any, Any]]:
        for count in self._counts:
            place, before, added, now = count.place, count.before, count.added, count.place.get()
            if count.is_written:
                if added or not any(now is each.value and each.is_free for each in self.taken):
                    raise count.refusal(f": {OF_COUNTS}")
                yield place, now
            elif added:
                of = [each for each in self.taken if each.is_free and not set(count.sums).isdisjoint(each.sums)]
                if added == [None] and not of and type(before) is int and type(now) is int:
                    added = [now - before]
                taken = tuple(each.value for each in of)
                numbers = () if of else tuple(each for each in added if each is not None)
                step = Added(place.kind, place.holder, place.key, place.path, numbers)
                is_known = len(of) == len(added) and (len(of) == 1 or all(map(_is_in_its_sum, of)))
                is_known = is_known if of else None not in added
                is_known = is_known and type(before) in (int, float)
                if not is_known or step.expected(before, taken) != now:
                    raise count.refusal(f": {OF_COUNTS}", is_seen=is_known)
                self.guards.append(Guard(place, type(before), (), lambda n: True, True, place.path))
                yield step, taken
            elif now is not before and now != before:
                raise count.refusal(", and it is not known where", is_seen=True)

    # ---- lists, and numbers in dicts

    def _see_way(self, way: Way, access: Access) -> None:
        node: ast.AST | None = access.node
        parents = access.syntax.parents
        self._reads[id(way.place)] += not access.is_write
        if way.key is not None and not access.is_write:
            node = parents.get(access.node)
            if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
                self._refuse(f"it reads {way.place.path}, in which it changes {way.key!r}: read that by its key")
                return
            if node.slice.value != way.key:
                return
            if way.is_number and not isinstance(node.ctx, ast.Del):
                holder, is_write = way.place.get(), isinstance(node.ctx, ast.Store)
                for count in self._counts:
                    if count.place.holder is holder and count.place.key == way.key:
                        self._see_number(count, access._replace(node=node, is_write=is_write))
                return
        if access.is_write or node is None or not is_appended_to(node, access.syntax):
            self._refuse(f"it reads {way.place.path}, which grows in each call: read it outside")
            return
        self._appended[id(way.to)] += 1
        self._nodes.add(node)

    def _lists(self) -> Iterator[tuple[Any, Any]]:
        for key, way in self._known.lists.items():
            holder, count = way.to, self._appended[key]
            length = self._lengths[key] + count
            if isinstance(holder, deque) and holder.maxlen is not None:
                length = min(length, holder.maxlen)
            if len(holder) != length or count > length:
                raise _unless_of_others(f"it changes {way.place.path}, and it is not known where")
            if count:
                target = Appended(holder, way.place.path, count)
                if any(isinstance(each, torch.Tensor) and each.requires_grad for each in parts(target.now())):
                    raise Unrecordable(f"it appends a tensor with a graph to {way.place.path}: detach it")
                yield target, target.now()

    # ---- numbers of tensors

    def _chain(self, frame: FrameType | None, function: Any) -> list[Step] | None:
        """The expression in the user's code that takes a number, and the calls around it; None if that is not known."""
        steps: list[Step] = []
        below = None
        for each in callers(frame, RECORDING):
            code = each.f_code
            if is_of_library(code.co_filename):
                continue
            syntax, node = expression_at(each) if is_of_user(each) or is_of_package(each) else (None, None)
            if syntax is None or node is None or code.co_flags & _SUSPENDS:
                return None
            if not (_takes(node, each, function) if below is None else _code_of(called_by(node, each)) is below):
                return None
            steps.append(Step(syntax, code, node))
            below = code
        return steps if steps and _code_of(self._outermost) is below else None

    def _chain_if_known(self, frame: FrameType | None, function: Any) -> list[Step] | None:
        try:
            return self._chain(frame, function)
        except Exception as failure:  # of what is not foreseen; the call goes on
            self._refuse(unseen(failure))
            return None

    def _refuse(self, why: str) -> None:
        self._obstacle = self._obstacle or why


def _unless_of_others(why: str) -> Unrecordable:
    """Of what this thread has not done."""
    return Unrecordable(OTHERS if other_threads.there_are() else why)


def _takes(node: ast.AST, frame: FrameType, function: Any) -> bool:
    """Whether that is where a number is taken, and not a function of C that asks for it and decides by it."""
    if not isinstance(node, ast.Call):
        return False
    if function == torch.Tensor.item:
        return isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args
    return value_of(node.func, frame) is float and len(node.args) == 1


def _code_of(function: Any) -> CodeType | None:
    """Of a function, below what calls it and returns what that returns: a mode of gradients that decorates it, or what
    says so (``hands_on``)."""
    while isinstance(function, FunctionType) and (function.__code__ is _OF_MODES or "hands_on" in vars(function)):
        function = vars(function).get("__wrapped__")
    return function.__code__ if isinstance(function, FunctionType) else None


def _is_of_module(place: Place) -> bool:
    """A global name, or a variable of functions: no code but that of functions reads them."""
    return place.kind == CELL or (type(place.holder) is dict and "__builtins__" in place.holder)


def _is_in_its_sum(number: Any) -> bool:
    """Whether a number is taken in the statement that adds it, so that each run of that adds its own."""
    return len(number.sums) == 1 and number.steps[0].node in ast.walk(number.sums[0])
