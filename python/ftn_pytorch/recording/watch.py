# SPDX-License-Identifier: MIT
"""What a function depends on besides its arguments: the names it uses, the fields and items that they lead to."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import torch

from .. import instances, private_names

_LARGE = 1000
# fields that every module of torch has, and that are looked at in another way or are none of the user's
_OF_MODULES = frozenset(vars(torch.nn.Module())) - {"training"}


class Binding(NamedTuple):
    """An item of a dict or list, or the content of a cell; with the key None the number of items."""

    container: Any
    key: Any
    value: Any
    path: str

    def now(self) -> Any:
        """What it means now."""
        try:
            if self.key is None:
                return len(self.container)
            if isinstance(self.container, (dict, list)):
                return self.container[self.key]
            return self.container.cell_contents
        except (KeyError, IndexError, ValueError):
            return None

    def holds(self) -> bool:
        now = self.now()
        return now is self.value or (
            type(now) is type(self.value) and isinstance(now, (int, float, str, bytes)) and now == self.value
        )


class Watch:
    """Bindings that must stay what they are, and the objects of torch that were found behind them."""

    def __init__(self, function: Any, others: Iterable[Any] = ()) -> None:
        self.bindings: list[Binding] = []
        self.modules: list[Any] = []
        self.optimizers: list[Any] = []
        self._seen: set[int] = set()
        self._todo: deque[tuple[Any, str]] = deque([(function, ""), *((each, "") for each in others)])
        while self._todo:
            value, path = self._todo.popleft()
            if id(value) not in self._seen:
                self._seen.add(id(value))
                self._look(value, path)

    def changed(self) -> Binding | None:
        """The first binding that means something else now."""
        return next((binding for binding in self.bindings if not binding.holds()), None)

    def hooks(self) -> str:
        """What runs code of the user when a module is called or a gradient is there; empty if nothing does."""
        for module in self.modules:
            if private_names.has_hooks(module):
                return f"a hook of {type(module).__name__}"
        for optimizer in self.optimizers:
            if private_names.has_hooks(optimizer):
                return f"a hook of {type(optimizer).__name__}"
        for parameter in self.parameters():
            if private_names.has_hooks(parameter):
                return "a hook of a parameter"
        return ""

    def parameters(self) -> Iterator[Any]:
        """Parameters of the modules and of the optimizers, each once."""
        found = [p for module in self.modules for p in module.parameters(recurse=False)]
        found += [p for optimizer in self.optimizers for group in optimizer.param_groups for p in group["params"]]
        yield from {id(parameter): parameter for parameter in found}.values()

    def _look(self, value: Any, path: str) -> None:
        if isinstance(value, MethodType):
            self._todo += [(value.__func__, path), (value.__self__, f"{path}.__self__")]
        elif isinstance(value, FunctionType):
            self._function(value, path)
        elif isinstance(value, torch.nn.Module):
            self._module_of_torch(value, path)
            self._methods(type(value), path)
        elif isinstance(value, torch.optim.Optimizer):
            self._optimizer(value, path)
        elif isinstance(value, (dict, list, tuple)):
            self._items(value, path)
        elif isinstance(value, deque):
            self.bindings.append(Binding(value, None, len(value), f"len({path})"))
        elif instances.is_plain(type(value)) and hasattr(value, "__dict__"):
            self._fields(vars(value), path)
            self._methods(type(value), path)
        elif isinstance(value, functools.partial):
            self._todo += [(each, path) for each in (value.func, *value.args, *value.keywords.values())]

    def _bind(self, container: Any, key: Any, value: Any, path: str) -> None:
        self.bindings.append(Binding(container, key, value, path))
        self._todo.append((value, path))

    def _module_of_torch(self, module: Any, path: str) -> None:
        self.modules.append(module)
        for table in private_names.tables_of(module):
            for name, each in table.items():
                self._bind(table, name, each, f"{path}.{name}".lstrip("."))
        self._fields(vars(module), path)

    def _fields(self, fields: dict[str, Any], path: str) -> None:
        for name, value in fields.items():
            if name not in _OF_MODULES and not name.startswith("__"):
                self._bind(fields, name, value, f"{path}.{name}".lstrip("."))

    def _items(self, value: Any, path: str) -> None:
        if not isinstance(value, tuple):
            self.bindings.append(Binding(value, None, len(value), f"len({path})"))
        if len(value) > _LARGE:
            return
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, tuple):
                self._todo.append((each, f"{path}[{key}]"))
            else:
                self._bind(value, key, each, f"{path}[{key!r}]")

    def _optimizer(self, optimizer: Any, path: str) -> None:
        self.optimizers.append(optimizer)
        groups = optimizer.param_groups
        for name in ("state", "param_groups"):
            self.bindings.append(Binding(vars(optimizer), name, vars(optimizer)[name], f"{path}.{name}"))
        self.bindings.append(Binding(groups, None, len(groups), f"len({path}.param_groups)"))
        for number, group in enumerate(groups):
            place = f"{path}.param_groups[{number}]"
            for key, value in group.items():
                # other numbers enter a recording as what they are in each call
                if not is_setting(value):
                    self._bind(group, key, value, f"{place}[{key!r}]")
        for parameter, state in optimizer.state.items():
            self.bindings.append(Binding(optimizer.state, parameter, state, f"{path}.state"))
            if isinstance(state, dict):
                for name, value in state.items():
                    self._bind(state, name, value, f"{path}.state[...][{name!r}]")

    def _function(self, function: FunctionType, path: str) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                self._bind(cell, 0, cell.cell_contents, name)
            except ValueError:  # not assigned yet
                continue
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._todo.append((default, f"a default of {function.__name__}"))
        if not instances.is_own_module(function.__globals__.get("__name__", "")):
            return
        names = set(_names_in(function.__code__))
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if isinstance(value, ModuleType):
                self._module(value, names)
            else:
                self._bind(function.__globals__, name, value, name)

    def _methods(self, kind: type, path: str) -> None:
        for each in kind.__mro__:
            if instances.is_own_module(each.__module__):
                self._todo += [(method, f"{path}.{name}") for name, method in vars(each).items() if callable(method)]

    def _module(self, module: ModuleType, names: set[str]) -> None:
        if instances.is_own_module(module.__name__):
            for name in names & vars(module).keys():
                self._bind(vars(module), name, vars(module)[name], f"{module.__name__}.{name}")


def is_setting(value: Any) -> bool:
    """True for what a scheduler may change: numbers other than zero, alone or in tuples."""
    if isinstance(value, tuple):
        return bool(value) and all(is_setting(item) for item in value)
    return isinstance(value, float) and value != 0


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)
