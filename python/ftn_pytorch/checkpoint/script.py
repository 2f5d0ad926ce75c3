# SPDX-License-Identifier: MIT
"""Checkpoints of a script that does not know of them: what among its names is state, and hooks of its own.

Of the names of a script these are state: objects that have one (modules, optimizers, schedulers, scalers, random
generators, see ``objects``), lists and dicts of such objects, arrays, lists, dicts, sets and deques, and numbers, texts
and None that one of its functions declares ``global`` and assigns to. Not state are names in capital letters
(constants), names with ``__`` at both ends, hooks and declarations (``ftn_pytorch_...``), modules, classes and
functions. ``ftn_pytorch_state = ["net", "step"]`` names the state instead; so does a ``Checkpoint`` among the names.
"""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any

from .. import loading
from ..errors import FtnPytorchError
from ..values import Encoder, Unstorable, find_imported_type, is_array, is_number, is_tensor, loaded
from . import file
from .base import Checkpoint, describe
from .folder import Session
from .objects import Rebind, holds_objects, tree_of

STATE = "ftn_pytorch_state"
_HOOKED = "hook"
_PREFIX = "ftn_pytorch_"
_CONTAINERS = (list, dict, defaultdict, OrderedDict, Counter, set, deque, bytearray)
_SCALARS = (type(None), bool, int, float, complex, str, bytes, tuple)


class ScriptCheckpoint(Checkpoint):
    """The state among the names of a script, looked for whenever it is written or read."""

    def __init__(self, path: str, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.config = config
        self._script = path
        self._namespace: dict[str, Any] = {}
        self._assigned: set[str] = set()

    def use(self, namespace: dict[str, Any]) -> None:
        """Go on with these names, those of the script, which are others after it was loaded again."""
        if namespace is not self._namespace:
            self._namespace = namespace
            self._assigned = _assigned_names(namespace)

    def hooked(self, save: Callable[[str], None], restore: Callable[[str], None]) -> Checkpoint:
        """The same for a script with hooks: they write and read what is kept."""
        return _HookedCheckpoint(save, restore, self._script, self._session)

    def is_empty(self) -> bool:
        """True if nothing among the names is state."""
        return not self._collect()

    def _collect(self) -> dict[str, Any]:
        own = [value for value in self._namespace.values() if isinstance(value, Checkpoint)]
        if len(own) > 1:
            raise FtnPytorchError(
                "HOOK", f"{self._script} has {len(own)} objects Checkpoint: leave one, or define ftn_pytorch_save"
            )
        if own:
            return own[0]._collect()
        declared = self._namespace.get(STATE)
        return self._declared(declared) if declared is not None else self._found()

    def _declared(self, names: Any) -> dict[str, Any]:
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise FtnPytorchError(
                "SCRIPT", f'{self._script}: {STATE} is {names!r}, it must be a list of names, ["net"]'
            )
        missing = [name for name in names if name not in self._namespace]
        if missing:
            raise FtnPytorchError(
                "SCRIPT", f"{self._script}: {STATE} names {', '.join(missing)}, which it does not define"
            )
        return {name: self._namespace[name] for name in names}

    def _found(self) -> dict[str, Any]:
        seen: set[int] = set()
        found = {}
        for name, value in self._namespace.items():
            if name.startswith(_PREFIX) or (name.startswith("__") and name.endswith("__")):
                continue
            if self._is_state(name, value) and not (holds_objects(value) and id(value) in seen):
                seen.add(id(value))
                found[name] = value
        return found

    def _is_state(self, name: str, value: Any) -> bool:
        if holds_objects(value):
            return True
        if isinstance(value, _SCALARS) or is_number(value):
            return name in self._assigned and _is_storable(value)
        if is_tensor(value) or is_array(value) or type(value) in _CONTAINERS:
            return not name.isupper() and _is_storable(value)
        self._refuse_hidden_objects(name, value)
        return False

    def _refuse_hidden_objects(self, name: str, value: Any) -> None:
        """An object with a network inside, of a class that cannot tell its state, would be lost without a word."""
        if isinstance(value, (type, ModuleType)) or inspect.isroutine(value):
            return
        attributes = getattr(value, "__dict__", None)
        inside = (
            [] if not isinstance(attributes, dict) else [key for key, each in attributes.items() if holds_objects(each)]
        )
        if inside and self._is_own(type(value).__module__):
            raise FtnPytorchError(
                "HOOK",
                f"{self._script}: {name} is of the class {type(value).__qualname__}, which holds {', '.join(inside)} "
                f"and has no state_dict and load_state_dict. Give it these two methods, or define ftn_pytorch_save and "
                f"ftn_pytorch_restore, or name in {STATE} what is to be kept",
            )

    def _is_own(self, module: str) -> bool:
        """True for the script itself and for modules beside it."""
        origin = getattr(loaded(module), "__file__", None) or ""
        return module == self._namespace.get("__name__") or os.path.dirname(origin) == os.path.dirname(self._script)

    def _rebinder(self, name: str) -> Rebind | None:
        if any(isinstance(value, Checkpoint) for value in self._namespace.values()):
            return None
        if name not in (self._namespace.get(STATE) or self._assigned):
            return None
        return lambda value: self._namespace.__setitem__(name, value)

    def _find_type(self, name: str) -> Any:
        # The script may run under another name than in the process that wrote the file.
        return self._namespace.get(name.partition(":")[2]) or find_imported_type(name)


class _HookedCheckpoint(Checkpoint):
    """What ftn_pytorch_save of a script writes, in a file with a checksum that is written as others are."""

    def __init__(
        self, save: Callable[[str], None], restore: Callable[[str], None], script: str, session: Session
    ) -> None:
        super().__init__()
        self._save, self._restore, self._script, self._session = save, restore, script, session

    def _write(self, path: str, step: int | None) -> None:
        where, name = os.path.split(path)
        part = os.path.join(where, file.part_name(name, "hook"))
        try:
            self._save(part)
            if not os.path.isfile(part):
                raise FtnPytorchError(
                    "HOOK",
                    f"ftn_pytorch_save of {self._script} was asked to write {part} and made no file of that name. "
                    "Some functions add an ending of their own: give them an open file in place of the name",
                )
            with open(part, "rb") as written:
                file.write(path, describe(step, _HOOKED), lambda stream: shutil.copyfileobj(written, stream, 1 << 20))
        finally:
            if os.path.isfile(part):
                os.unlink(part)

    def _read(self, path: str) -> Any:
        with file.opened(path) as (about, raw):
            if about.get("archive") != _HOOKED:
                raise FtnPytorchError(
                    "FORMAT", f"{path} was not written by ftn_pytorch_save, as {self._script} needs it, which has hooks"
                )
            copy = tempfile.NamedTemporaryFile(prefix="ftn_pytorch_")  # noqa: SIM115  closed in _apply
            shutil.copyfileobj(raw, copy, 1 << 20)
            copy.truncate(file.archive_length(raw))
            copy.flush()
            return about, copy

    def _apply(self, content: Any, path: str) -> int | None:
        about, copy = content
        with copy:
            self._restore(copy.name)
        return about.get("step")


def is_checkpoint(path: str) -> bool:
    """True for a file that ``checkpoint`` has written, and not a hook by itself."""
    return file.description(path) is not None


def _is_storable(value: Any) -> bool:
    try:
        Encoder(tree_of).encode(value, "")
    except Unstorable:
        return False
    return True


def _assigned_names(namespace: Mapping[str, Any]) -> set[str]:
    """Global names that functions of a script assign to."""
    name = namespace.get("__name__")
    codes = (code for value in namespace.values() for code in _codes_of(value, name))
    return {assigned for code in codes for assigned in loading.names_of(code, "STORE_GLOBAL")}


def _codes_of(value: Any, module: str | None) -> Iterator[CodeType]:
    """Code of a function or class that the script defines, also below decorators."""
    if getattr(value, "__module__", None) != module:
        return
    parts = list(vars(value).values()) if isinstance(value, type) else [value]
    for part in parts:
        function = getattr(part, "fget", None) or getattr(part, "__func__", part)
        function = inspect.unwrap(function) if callable(function) else None
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            yield code
