# SPDX-License-Identifier: MIT
"""What a function depends on besides its arguments: the names it uses, the fields and items that they lead to."""

from __future__ import annotations

import argparse
import functools
import gc
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch

from .. import instances, private_names

_LARGE = 1000
# fields that every module of torch has, and that are looked at in another way or are none of the user's
_OF_MODULES = frozenset(vars(torch.nn.Module())) - {"training"}
_NAMESPACES = (SimpleNamespace, argparse.Namespace)
# of classes: nothing that a call looks at
_OF_CLASSES = frozenset(vars(type("", (), {}))) | {"__annotations__", "__qualname__", "__static_attributes__"}
_CONTROL_FLOW = frozenset(("cond", "while_loop"))
_SETTINGS = frozenset(("param_groups", "get_last_lr", "get_lr"))


class Binding(NamedTuple):
    """An item of a dict or list, the content of a cell, a slot of an object; with the key None the number of items."""

    container: Any
    key: Any
    value: Any
    path: str

    def now(self) -> Any:
        """What it means now."""
        try:
            if self.key is None:
                return len(self.container)
            if isinstance(self.container, (dict, list, deque)):
                return self.container[self.key]
            return getattr(self.container, "cell_contents" if self.key == 0 else self.key)
        except (AttributeError, KeyError, IndexError, ValueError):
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
        self.tensors: list[Any] = []
        self._reads_settings = False
        self._unseen = ""
        self._seen: set[int] = set()
        self._todo: deque[tuple[Any, str]] = deque([(function, ""), *((each, "") for each in others)])
        while self._todo:
            value, path = self._todo.popleft()
            if id(value) not in self._seen:
                self._seen.add(id(value))
                self._look(value, path)
        if self._reads_settings:
            self._bind_settings()
        if self.modules:
            for hooks in private_names.hooks_of_all_modules():
                self._bind_length(hooks, "hooks of all networks")

    def changed(self) -> Binding | None:
        """The first binding that means something else now."""
        return next((binding for binding in self.bindings if not binding.holds()), None)

    def obstacle(self) -> str:
        """What cannot be watched, or runs code when a module is called or a gradient is there; or empty."""
        if self._unseen:
            return self._unseen
        if self.modules and any(private_names.hooks_of_all_modules()):
            return "a hook of all networks would not be called"
        for module in self.modules:
            if private_names.has_hooks(module):
                return f"a hook of {type(module).__name__} would not be called"
        for optimizer in self.optimizers:
            if private_names.has_hooks(optimizer):
                return f"a hook of {type(optimizer).__name__} would not be called"
        for parameter in self.parameters():
            if private_names.has_hooks(parameter):
                return "a hook of a parameter would not be called"
        return ""

    def parameters(self) -> Iterator[Any]:
        """Parameters of the modules and of the optimizers, and other leaves of autograd, each once."""
        found = [tensor for tensor in self.tensors if tensor.requires_grad and tensor.is_leaf]
        found += [p for module in self.modules for p in module.parameters(recurse=False)]
        found += [p for optimizer in self.optimizers for group in optimizer.param_groups for p in group["params"]]
        yield from {id(parameter): parameter for parameter in found}.values()

    def _look(self, value: Any, path: str) -> None:
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
        elif isinstance(value, MethodType):
            self._todo += [(value.__func__, path), (value.__self__, f"{path}.__self__")]
        elif isinstance(value, FunctionType):
            self._function(value, path)
        elif isinstance(value, type):
            self._class(value, path)
        elif isinstance(value, torch.jit.ScriptModule):
            self._unseen = (
                f"{path} is a TorchScript model, whose fields cannot be watched; use the network that it was made of"
            )
        elif isinstance(value, torch.nn.Module):
            self._module_of_torch(value, path)
            self._todo.append((type(value), type(value).__name__))
        elif isinstance(value, torch.optim.Optimizer):
            self._optimizer(value, path)
        elif instances.is_plain(type(value)) or isinstance(value, _NAMESPACES):
            self._object(value, path)
        elif isinstance(value, (dict, list, tuple, deque)):
            self._items(value, path)
        elif isinstance(value, set):
            self._bind_length(value, path)
        elif isinstance(value, functools.partial):
            self._todo += [(each, path) for each in (value.func, *value.args, *value.keywords.values())]
        else:
            # property, staticmethod and classmethod, functools.cached_property, functools.lru_cache
            names = ("fget", "fset", "__func__", "func", "__wrapped__")
            inner = [getattr(value, name, None) for name in names]
            self._todo += [(each, path) for each in inner if isinstance(each, FunctionType)]

    def _bind(self, container: Any, key: Any, value: Any, path: str) -> None:
        self.bindings.append(Binding(container, key, value, path))
        self._todo.append((value, path))

    def _bind_length(self, container: Any, path: str) -> None:
        self.bindings.append(Binding(container, None, len(container), f"len({path})"))

    def _module_of_torch(self, module: Any, path: str) -> None:
        self.modules.append(module)
        for table in private_names.tables_of(module):
            self._bind_length(table, path)
            for name, each in table.items():
                self._bind(table, name, each, f"{path}.{name}".lstrip("."))
        for hooks in private_names.hooks_of(module):
            self._bind_length(hooks, f"hooks of {path}")
        self._fields(vars(module), path)

    def _object(self, value: Any, path: str) -> None:
        if isinstance(value, (dict, list)):
            self._items(value, path)
        elif isinstance(value, set):
            self._bind_length(value, path)
        fields = getattr(value, "__dict__", {})
        self._fields(fields, path)
        for name, each in instances.fields(value).items():
            if name not in fields:
                self._bind(value, name, each, f"{path}.{name}")
        self._todo.append((type(value), type(value).__name__))

    def _class(self, kind: type, path: str) -> None:
        if instances.is_own_module(kind.__module__):
            self._todo += [(each, each.__name__) for each in kind.__bases__]
            # what a class shows of its fields is no dict, and stands for one
            (fields,) = (each for each in gc.get_referents(vars(kind)) if type(each) is dict)
            self._fields(fields, path, without=_OF_CLASSES)

    def _fields(self, fields: dict[str, Any], path: str, without: frozenset = _OF_MODULES) -> None:
        self._bind_length(fields, path or "fields")
        for name, value in fields.items():
            if name not in without:
                self._bind(fields, name, value, f"{path}.{name}".lstrip("."))

    def _items(self, value: Any, path: str) -> None:
        if not isinstance(value, tuple):
            self._bind_length(value, path)
        if len(value) > _LARGE:
            if "." not in path:
                self._unseen = f"{path} has more than {_LARGE} items, too many to be watched; make it a tensor"
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
        self._bind_length(groups, f"{path}.param_groups")
        for hooks in private_names.hooks_of(optimizer):
            self._bind_length(hooks, f"hooks of {path}")
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
        names = set(_names_in(function.__code__))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                self._bind(cell, 0, cell.cell_contents, name)
            except ValueError:  # not assigned yet
                continue
            self._module(cell.cell_contents, names)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._todo.append((default, f"a default of {function.__name__}"))
        if inner := getattr(function, "__wrapped__", None):
            self._todo.append((inner, path))
        if not instances.is_own_module(function.__globals__.get("__name__", "")):
            return
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self.bindings.append(Binding(function, name, getattr(function, name), f"{function.__name__}.{name}"))
        if "torch" in names and (found := names & _CONTROL_FLOW):
            # its compiler does not go together with the modes of a recorder
            self._unseen = f"{function.__name__} calls torch.{found.pop()}, which is given functions"
        self._reads_settings |= bool(names & _SETTINGS)
        for name in sorted(names):
            if name in function.__globals__:
                value = function.__globals__[name]
                self._bind(function.__globals__, name, value, name)
                self._module(value, names)
            else:  # imported in the function
                self._module(sys.modules.get(name), names)

    def _module(self, module: Any, names: set[str]) -> None:
        if not isinstance(module, ModuleType) or not instances.is_own_module(module.__name__):
            return
        for name in sorted(names & vars(module).keys()):
            value = vars(module)[name]
            self._bind(vars(module), name, value, f"{module.__name__}.{name}")
            if isinstance(value, ModuleType) and value is not module:
                self._module(value, names)

    def _bind_settings(self) -> None:
        """The function reads numbers of optimizers itself, so they are constants of the recording."""
        for optimizer in self.optimizers:
            for number, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    if is_setting(value):
                        self._bind(group, key, value, f"param_groups[{number}][{key!r}]")


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
