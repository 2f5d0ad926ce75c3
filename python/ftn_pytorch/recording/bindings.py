# SPDX-License-Identifier: MIT
"""What a function depends on besides its arguments, as bindings that are compared before each run of a recording.

``values.walk`` finds what the code of the function can reach, and goes on in the call that is recorded with what is
read there. What is understood is bound or is a constant, all else makes the function unrecordable: ``obstacle`` names
it.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from ..system import extension, private_names
from ..values import user_objects
from ..values.code_names import globals_in, names_in
from ..values.held import CACHED, EMPTY, dict_of_class, fields_of, slots, slots_of
from ..values.kinds import base_of, is_of_decimals, is_simple
from ..values.optimizer_settings import is_live, is_setting
from ..values.walk import CLASS_ONLY, LARGE, By, Edge, Kind, Walk
from . import binding
from .binding import ABSENT, ANYTHING, CELL, ITEM, SLOT, Binding, items_of, pairs_of, results_kept
from .operations import is_of_library, parameters_of, tried_in
from .reads import ASKING, DESCRIPTORS, OF_C, PAST_READS, SEES_RECORDER, Reads
from .recorder import unseen

_CONTROL_FLOW = frozenset(("cond", "while_loop"))
_STEPPING = frozenset(("step", "zero_grad", "state"))
"""What may be asked of an optimizer or a scheduler that tells nothing of its numbers."""

_MAKE_IT_A_TENSOR = "whose changes cannot be seen: make it a tensor"
_OF_FUNCTIONS = frozenset(("__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__globals__"))
_WITH_FIELDS = (Kind.CONSTANT, Kind.CONTAINER, Kind.OBJECT, Kind.SCHEDULER, Kind.FUNCTION)


class Watch:
    """Bindings that must stay what they are, and the objects of torch that were found behind them.

    ``others``: more roots. ``ignored``: paths that do not count. ``met`` is told each object of torch and each random
    generator as soon as it is found. ``counts``: what holds numbers whose reads are counted. While ``reads`` is
    entered, what is read is found, too; ``finish`` ends that.
    """

    def __init__(
        self,
        function: Any,
        others: Iterable[Any] = (),
        ignored: frozenset[str] = frozenset(),
        met: Callable[[Any, str], None] = lambda value, path: None,
        counts: Iterable[Any] = (),
    ) -> None:
        self.bindings: list[Binding] = []
        self.modules: list[Any] = []
        self.optimizers: list[Any] = []
        self.tensors: list[Any] = []
        self.functions: list[FunctionType] = []
        self.handed: list[Any] = []
        """Functions of C that other functions of C call."""
        self.edges: dict[int, list[Edge]] = {}
        """Those that lead to a list or a dict, by its identity."""
        self.reads = Reads(self._read)
        self._met, self._counts = met, set(map(id, counts))
        self.whole: list[Binding] = []
        """All fields of what only some are read of: none of them may change."""
        self._attributes: list[Binding] = []
        """Of tensors: those that are not there cannot be read, only asked for."""
        self._unseen = ""
        self._followed: dict[int, tuple[Any, str, set[Any], tuple]] = {}
        self._weak: dict[int, tuple[Any, str]] = {}
        self._strong: set[int] = set()
        self._looked = 0
        self._is_busy = False
        self._switches: set[tuple[int, str]] = set()
        self._asks_numbers = self.asks_descriptors = False
        roots = [("", function), *(("an argument", each) for each in others)]
        self._walk = Walk(roots, is_narrow=True, skipped=ignored)
        self.names = self._walk.names
        self._go()

    def _go(self) -> None:
        """Look at what was found."""
        for edge in self._walk:
            self._bind(edge)
        found = list(itertools.islice(self._walk.entered.values(), self._looked, None))
        self._looked += len(found)
        for value, path, kind in found:
            self._look(value, path, kind)
        for value, _, _ in found:
            is_counted = not self._counts.isdisjoint((id(value), id(fields_of(value))))
            if (self._walk.is_aside(value) and not isinstance(value, type)) or is_counted:
                self.reads.look_at(value)

    def _read(self, value: Any, name: str) -> bool:
        """An attribute was asked for, which may not be there; false if that does not matter."""
        kind = type(value)  # isinstance would ask the value
        is_stepped = issubclass(kind, (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler))
        is_of_torch = is_stepped or (name == "__dict__" and issubclass(kind, (torch.nn.Module, torch.Tensor)))
        if self._is_busy:
            return False
        if is_of_torch and is_of_library(sys._getframe(2).f_code.co_filename):
            return name != "__dict__"
        if is_stepped:
            self._asks_numbers |= name not in _STEPPING
            return True
        self._is_busy = True
        try:
            if self._walk.read(value, name):
                self._go()
            elif (of := next((each for each in kind.__mro__ if name in vars(each)), None)) and name not in CLASS_ONLY:
                self.switched(dict_of_class(of), name)
            elif isinstance(value, ModuleType) and name not in (space := fields_of(value)):
                self._add(ABSENT, space, name, None, f"{space.get('__name__')}.{name}")
            if name == "__dict__" and isinstance(value, ModuleType):
                self.bindings.append(items_of(fields_of(value), f"{fields_of(value).get('__name__')}."))
        except Exception as failure:
            self._refuse(unseen(failure))
        finally:
            self._is_busy = False
        return True

    def ran(self, code: CodeType, space: dict[str, Any], is_of_package: bool) -> bool:
        """Code of the user, or of a package, was called; false if nothing leads to it."""
        self._is_busy, is_known = True, True
        try:
            if is_of_package:
                self._walk.ran_in_package(code, space)
            else:
                is_known = self._walk.ran(code, space)
            self._go()
        except Exception as failure:
            self._refuse(unseen(failure))
        finally:
            self._is_busy = False
        return is_known

    def looked_up(self, space: dict[str, Any], name: str) -> None:
        """A module was imported by a text, or something else is read that no code names."""
        self._walk.looked_up(space, name)
        self._go()

    def switched(self, space: dict[str, Any], name: str) -> None:
        """Code of an installed package has read a name that functions of its module give other values."""
        if is_simple(space.get(name, space)) and (id(space), name) not in self._switches:
            self._switches.add((id(space), name))
            of = space.get("__name__") or space.get("__qualname__") or space.get("__module__")
            self._add(ITEM, space, name, space[name], f"{of}.{name}")

    def finish(self) -> None:
        """Nothing more is read, nor met."""
        self.asks_descriptors |= any(PAST_READS.intersection(names_in(code)) for code in self._walk.codes)
        if self.asks_descriptors:
            self._walk.read_all()
            self._go()
        del self.reads, self._met
        for target, path in self._weak.values():
            if id(target) not in self._strong and target is not None:
                self._refuse(f"{path} is a weak reference to what a recording would keep alive: use the object by name")
        asks = self.names & ASKING or any(map(tried_in, self._walk.codes))
        (self.bindings if asks else self.whole).extend(self._attributes)
        for holder, path, keys, pairs in self._followed.values():
            self.bindings.append(items_of(holder, path, keys, pairs))
        if self._asks_numbers:
            self._bind_settings()
        if self.asks_descriptors:
            self.bindings.extend(self.whole)
        for kind, hooks in self._hooks_of_all():
            self.bindings.append(items_of(hooks, f"hooks of all {kind}"))

    def release(self, change: Callable[[Binding], Binding | None]) -> None:
        """What may become another one: ``change`` gives another binding, or none."""
        for bindings in (self.bindings, self.whole):
            bindings[:] = [each for each in map(change, bindings) if each is not None]

    def changed(self) -> list[Binding]:
        """What is not as it was found."""
        first_change = extension.module().first_change
        return [each for each in (*self.whole, *self.bindings) if first_change([each]) >= 0]

    def obstacle(self) -> str:
        """What cannot be watched, or runs code when a module is called or a gradient is there; or empty."""
        if self._unseen:
            return self._unseen
        if found := self.names & SEES_RECORDER:
            return f"it calls {found.pop()}, which sees the recorder, too"
        for kind, hooks in self._hooks_of_all():
            if hooks:
                return f"a hook of all {kind} would not be called"
        for each in (*self.modules, *self.optimizers):
            if private_names.has_hooks(each):
                return f"a hook of {type(each).__name__} would not be called"
        for parameter in self.parameters():
            if extension.module().is_waited_for(parameter):
                return "a hook of a parameter would not be called"
        return ""

    def _hooks_of_all(self) -> Iterator[tuple[str, Any]]:
        for kind, name, found in (("networks", "modules", self.modules), ("optimizers", "optimizers", self.optimizers)):
            yield from ((kind, hooks) for hooks in (private_names.hooks_of_all(name) if found else ()))

    def parameters(self) -> Iterator[Any]:
        """Parameters of the modules and of the optimizers, and other leaves of autograd, each once."""
        found = [each for value in (*self.tensors, *self.modules, *self.optimizers) for each in parameters_of(value)]
        yield from {id(parameter): parameter for parameter in found}.values()

    def reached(self) -> set[int]:
        """Identities of all tensors that names lead to, and of their gradients."""
        found = {id(tensor) for tensor in (*self.tensors, *self.parameters())}
        return found | {id(each.grad) for each in self.parameters() if each.grad is not None}

    # ---- ways to values

    def _bind(self, edge: Edge) -> None:
        if isinstance(edge.holder, weakref.ReferenceType):
            self._weak[id(edge.value)] = (edge.value, edge.path)
        else:
            self._strong.add(id(edge.value))
        self.asks_descriptors |= isinstance(edge.value, DESCRIPTORS) and edge.by != By.FIELD
        if isinstance(edge.value, OF_C):
            self.names.add(str(getattr(edge.value, "__name__", type(edge.value).__name__)))
            self.handed += [edge.value] if isinstance(edge.holder, functools.partial) else []
        if is_of_decimals(edge.value):
            self._refuse(f"{edge.path} computes by the context of decimal, which may be another one: use floats")
        if type(edge.value) in (list, deque, dict):
            self.edges.setdefault(id(edge.value), []).append(edge)
        if edge.by == By.GLOBAL and edge.holder is not None:
            self._add(ITEM, edge.holder, edge.key, edge.value, edge.path)
        elif edge.by == By.CELL:
            self._add(CELL, edge.holder, None, ANYTHING if edge.value is EMPTY else edge.value, edge.path)
        elif edge.by == By.FIELD:
            if isinstance(edge.holder, dict):
                self._followed_in(edge.holder, edge.path.removesuffix(str(edge.key))).add(edge.key)
            else:
                self._add(SLOT, edge.holder, edge.key, edge.value, edge.path)

    def _followed_in(self, fields: dict[str, Any], path: str) -> set[Any]:
        if id(fields) not in self._followed:
            self._followed[id(fields)] = (fields, path, set(), pairs_of(fields))
        return self._followed[id(fields)][2]

    def _add(self, kind: int, holder: Any, key: Any, value: Any, path: str) -> None:
        self.bindings.append(Binding(kind, holder, key, value, path))

    # ---- values

    def _refuse(self, why: str) -> None:
        self._unseen = self._unseen or why

    def _look(self, value: Any, path: str, kind: Kind) -> None:
        looks: dict[Kind, Callable[[Any, str], None]] = {
            Kind.TENSOR: self._tensor,
            Kind.ARRAY: lambda _, path: self._refuse(f"{path} is an array of NumPy, {_MAKE_IT_A_TENSOR}"),
            Kind.GENERATOR: self._met,
            Kind.CONTAINER: self._container,
            Kind.OBJECT: self._object,
            Kind.SCHEDULER: self._object,
            Kind.MODULE: self._module,
            Kind.OPTIMIZER: self._optimizer,
            Kind.FUNCTION: self._function,
            Kind.CLASS: self._class,
            Kind.HARMLESS: self._harmless,
            Kind.UNKNOWN: self._unknown,
        }
        if kind in looks:
            looks[kind](value, path)
        if kind in _WITH_FIELDS and type(value).__dictoffset__ and type(value) is not OrderedDict:
            fields = fields_of(value)
            self._add(binding.FIELDS, value, None, fields, f"fields of {path}")
            self._followed_in(fields, f"{path}.")
        if self._walk.is_aside(value) and not isinstance(value, type):
            fields = fields_of(value)
            prefix = fields.get("__name__") if isinstance(value, ModuleType) else path
            self.whole.append(items_of(fields, f"{prefix}."))

    def _unknown(self, value: Any, path: str) -> None:
        kind = type(value)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        self._refuse(
            f"{path or 'it'} is of type {name}, whose changes cannot be seen: keep what it holds in tensors, lists, "
            "dicts or objects of your own, use it outside of the recorded function, or name it in ignore= of recorded"
        )

    def _tensor(self, value: Any, path: str) -> None:
        self.tensors.append(value)
        self._add(binding.CLASS, value, None, type(value), f"the class of {path}")
        self._attributes.append(items_of(fields_of(value), f"{path}."))
        self._met(value, path)

    def _container(self, value: Any, path: str) -> None:
        base = base_of(type(value))
        if len(value) > LARGE and not all(isinstance(each, torch.Tensor) for each in value):
            self._refuse(f"{path} has more than {LARGE} items, too many to be watched; make it a tensor")
        elif not issubclass(base, (tuple, frozenset)):
            self.bindings.append(items_of(value, path))
            if issubclass(base, defaultdict):
                self._add(SLOT, value, "default_factory", value.default_factory, f"{path}.default_factory")

    def _object(self, value: Any, path: str) -> None:
        if isinstance(value, weakref.finalize):
            self._unknown(value, path)
        self._add(binding.CLASS, value, None, type(value), f"the class of {path}")
        there = slots_of(value)
        for name in slots(type(value)):
            each = Binding(SLOT, value, name, there.get(name, ANYTHING), f"{path}.{name}")
            (self.whole if name in there else self.bindings).append(each)
        if base_of(type(value)) is not object:
            self._container(value, path)
        if isinstance(value, torch.amp.GradScaler) and value.is_enabled():
            self._refuse(f"{path} decides in Python whether a step is made: scale outside, or use bfloat16 without it")
        if isinstance(value, torch.optim.lr_scheduler.LRScheduler):
            self.reads.look_at(value)

    def _harmless(self, value: Any, path: str) -> None:
        """Flags and counts of threads, and what a user's own class has beside its base."""
        if isinstance(value, (threading.Event, threading.Semaphore)) or user_objects.is_own_module(
            type(value).__module__
        ):
            fields = fields_of(value)
            self._followed_in(fields, f"{path}.").update(key for key, each in fields.items() if is_simple(each))

    def _module(self, module: Any, path: str) -> None:
        if isinstance(module, torch.jit.ScriptModule):
            self._refuse(
                f"{path} is a TorchScript model, whose fields cannot be watched; use the network that it was made of"
            )
            return
        self.modules.append(module)
        self._met(module, path)
        self._add(binding.CLASS, module, None, type(module), f"the class of {path}")
        for table in private_names.tables_of(module):
            self.bindings.append(items_of(table, path))
        for hooks in private_names.hooks_of(module):
            self.bindings.append(items_of(hooks, f"hooks of {path}"))
        self._followed_in(vars(module), f"{path}.")

    def _class(self, value: type, path: str) -> None:
        fields = dict_of_class(value)
        # its methods, too, of which only those are entered that run
        self._followed_in(fields, f"{path}.").update(fields.keys() - CLASS_ONLY)
        self._add(binding.BASES, value, None, value.__mro__, f"bases of {value.__name__}")

    def _function(self, value: Any, path: str) -> None:
        if type(value) is CACHED:
            if (kept := results_kept(value, path)) is None:
                self._refuse(f"{path} is a functools.lru_cache that is full: give it maxsize=None")
            self.bindings += kept or []
        if not isinstance(value, FunctionType):
            return
        self.functions.append(value)
        name = value.__name__
        held = (value.__code__, value.__defaults__, value.__kwdefaults__)
        self._add(binding.FUNCTION, value, None, held, f"{name}.__code__ or its defaults")
        if value.__kwdefaults__:
            self.bindings.append(items_of(value.__kwdefaults__, f"defaults of {name}"))
        mentioned = set(names_in(value.__code__, texts=False))
        if "torch" in mentioned and (found := mentioned & _CONTROL_FLOW):
            # its compiler does not go together with the modes of a recorder
            self._refuse(f"{name} calls torch.{found.pop()}, which is given functions")
        for each in globals_in(value.__code__):
            if each not in value.__globals__:
                self._add(ABSENT, value.__globals__, each, None, each)
                if each in vars(builtins):
                    self._add(ITEM, vars(builtins), each, vars(builtins)[each], each)
        for each in sorted(_OF_FUNCTIONS & self.names):
            now, path = getattr(value, each), f"{name}.{each}"
            self.bindings.append(items_of(now, path) if type(now) is dict else Binding(SLOT, value, each, now, path))

    def _optimizer(self, optimizer: Any, path: str) -> None:
        self.optimizers.append(optimizer)
        self.reads.look_at(optimizer)
        self._add(binding.CLASS, optimizer, None, type(optimizer), f"the class of {path}")
        self._followed_in(vars(optimizer), f"{path}.").update(("state", "param_groups"))
        for hooks in private_names.hooks_of(optimizer):
            self.bindings.append(items_of(hooks, f"hooks of {path}"))
        self.bindings.append(items_of(optimizer.param_groups, f"{path}.param_groups"))
        for number, group in enumerate(optimizer.param_groups):
            # other numbers enter a recording as what they are in each call
            keys = {key for key, value in group.items() if not (is_live(optimizer) and is_setting(value))}
            self.bindings.append(items_of(group, f"{path}.param_groups[{number}]", keys))
        self.bindings.append(items_of(optimizer.state, f"{path}.state"))
        self._met(optimizer, path)

    def _bind_settings(self) -> None:
        """The function reads numbers of optimizers itself, so they are constants of the recording."""
        for optimizer in self.optimizers:
            for number, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    if is_setting(value):
                        self._add(ITEM, group, key, value, f"param_groups[{number}][{key!r}]")
