# SPDX-License-Identifier: MIT
"""Checkpoints of a script that does not know of them: what among its names is state, and hooks of its own.

Of the names of a script these are state: objects that have one (modules, optimizers, schedulers, scalers, random
generators, see ``objects``), lists and dicts of such objects, arrays, lists, dicts, sets and deques, objects of own
classes, and whatever code of the script writes to (see ``changes``), also in other places (see ``names.Places``). What
is written to and cannot be kept is refused. Not state are names in capital letters (constants) that no code writes to,
names with ``__`` at both ends, hooks and declarations (``ftn_pytorch_...``), modules, and what
``ftn_pytorch_transient`` names. ``ftn_pytorch_state = ["net", "step"]`` names the state instead; so does a
``Checkpoint`` among the names.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import FtnPytorchError
from ..ranks.communicator import Communicator
from ..script.conventions import SHARED, STATE, TRANSIENT
from ..system import files, log, process
from ..values.encoding import Unstorable, find_imported_type, found_in
from . import background_runs, file, names, shared, together
from .base import SHARED_KEY, Checkpoint
from .capture import Collector
from .changes import Changes
from .content import NOT_UNDERSTOOD, not_understood
from .description import describe
from .folder import Session
from .restoring import Rebind
from .stateful import is_optimizer

_HOOKED = "hook"


class ScriptCheckpoint(shared.RanksCheckpoint):
    """The state among the names of a script, looked for whenever it is written or read."""

    def __init__(
        self,
        path: str,
        config: Mapping[str, Any],
        attached: Callable[[], dict[str, Any]] = dict,
        ours: Communicator | None = None,
    ) -> None:
        """``attached``: objects beside the names of the script, with names that no script can have.

        ``ours``: communicator of the ranks whose checkpoints belong together.
        """
        super().__init__()
        self._communicator = ours
        self.config = config
        self._attached = attached
        self._script = path
        self._namespace: dict[str, Any] = {}
        self._places: names.Places | None = None
        self._found = names.Found({}, {}, names.Left())
        self._told = ""
        self._is_beside_new = False

    def use(self, namespace: dict[str, Any]) -> None:
        """Go on with these names, those of the script, which are others after it was loaded again."""
        if namespace is not self._namespace:
            self._namespace = namespace
            self._changes = None

    def hooked(self, save: Callable[[str], None], restore: Callable[[str], None]) -> Checkpoint:
        """The same for a script with hooks: they write and read what is kept."""
        for name in self._attached():
            process.warn_once(
                f"{self._script}: {name} is not in what ftn_pytorch_save writes: call save for it, with another file"
            )
        return _HookedCheckpoint(save, restore, self._script, self._session, self._communicator)

    def write(self, path: str, *, keep: int = 3, step: int | None = None) -> str:
        ours, names = self._communicator, shared.declared(self._namespace, self._script)
        if ours is None or "%r" not in path or not names:
            return super().write(path, keep=keep, step=step)
        self._shared = frozenset(names)
        self._left_to_first = self._shared if ours.rank else frozenset()
        try:
            return together.write(
                self,
                ours,
                path,
                keep,
                step,
                lambda: self._described(names),
                lambda digests, mine: shared.refuse_different(ours, digests, mine, self._script),
            )
        finally:
            self._shared = self._left_to_first = frozenset()

    def _described(self, listed: list[str]) -> dict[str, str]:
        """What is to be the same on all ranks; SCRIPT if a name is not kept."""
        found = self._collect()
        unknown = [name for name in listed if name not in found]
        if unknown:
            raise FtnPytorchError(
                "SCRIPT",
                f"{self._script}: {SHARED} names {', '.join(unknown)}, which is not kept in checkpoints: it is none of "
                f"{', '.join(found)}",
            )
        return shared.descriptions({name: found[name] for name in listed}, self._collector())

    def is_empty(self) -> bool:
        """True if nothing among the names is state."""
        return not self._collect()

    def _collect(self) -> dict[str, Any]:
        attached = self._attached()
        if self._is_beside_new:
            del attached[background_runs.NAME]
        return {**self._own(), **attached}

    def _own(self) -> dict[str, Any]:
        own = [value for value in self._namespace.values() if isinstance(value, Checkpoint)]
        if len(own) > 1:
            raise FtnPytorchError(
                "HOOK", f"{self._script} has {len(own)} objects Checkpoint: leave one, or define ftn_pytorch_save"
            )
        if own:
            return own[0]._collect()
        self._found = names.Found({}, {}, names.Left())
        changes, transient = self._known_changes(), self._transient()
        declared = self._namespace.get(STATE)
        if declared is not None:
            self._found.values.update(self._declared(declared))
            for name, value in self._found.values.items():
                self._found.written[name] = changes.why(value, changes.of_global(self._namespace, name))
        else:
            self._found = names.find(self._namespace, changes, transient)
            self._places = names.Places(self._namespace, changes)
            self._places.find(self._found, transient)
        return self._found.values

    def _known_changes(self) -> Changes:
        if self._changes is None:
            self._changes = Changes(self._namespace)
        return self._changes

    def _transient(self) -> frozenset[str]:
        listed, changes = self._namespace.get(TRANSIENT, ()), self._known_changes()
        shared.require_names(
            listed,
            self._script,
            TRANSIENT,
            "logger",
            # Paths beside names are not looked for, and some names are made by a call.
            lambda name: (
                not name.isidentifier()
                or name in self._namespace
                or changes.is_assigned(changes.of_global(self._namespace, name))
            ),
        )
        return frozenset(listed)

    def _is_place(self, name: str) -> bool:
        return self._places is not None and self._places.has(name)

    def _collector(self) -> Collector:
        return Collector(
            changes=self._known_changes(),
            written=self._found.written,
            transient=self._transient(),
            find_type=self._find_type,
        )

    def _advice(self, failure: Unstorable) -> str:
        if not failure.line:
            return super()._advice(failure)
        return (
            f"and {failure.line} writes to it, so that a restart would lose that. Name it in {TRANSIENT} if it may be "
            "lost, or else keep what is in it in tensors, arrays, numbers, texts, lists and dicts, give it state_dict "
            f"and load_state_dict, or say in {STATE} what is to be kept"
        )

    def _is_declared(self) -> bool:
        return STATE in self._namespace or any(isinstance(each, Checkpoint) for each in self._namespace.values())

    def _declared(self, listed: Any) -> dict[str, Any]:
        shared.require_names(listed, self._script, STATE, "net", self._namespace.__contains__)
        return {name: self._namespace[name] for name in listed}

    def _check_kept(self, encoder: Collector, path: str) -> None:
        if not self._is_declared():
            self._check_hidden(encoder, path)
        super()._check_kept(encoder, path)
        left = self._found.left
        for name, kind in left.lost.items():
            process.warn_once(f"{self._script}: {name} is {kind}, which is not kept in checkpoints")
        told = ", ".join(f"{name} ({why})" for name, why in {**left, **encoder.left_out, **encoder.lost}.items())
        if told != self._told:
            kept = ", ".join(self._found.values)
            log.info(f"{self._script}: kept in checkpoints: {kept}; left out: {told or 'nothing'}")
            self._told = told

    def _check_hidden(self, encoder: Collector, path: str) -> None:
        lost: dict[str, Any] = {}
        for place, value in self._places.hidden() if self._places else ():
            inside = [each for each in names.objects_in(value) if not encoder.keeps(each)]
            is_told = any(value is each for each in lost.values()) or place in self._transient()
            if not is_told and any(not names.is_at_rest(each) for each in inside):
                lost[place] = value
        advice = (
            f"give each a name of the script (net = helpers.net), or say in {STATE} what is to be kept, "
            "or define ftn_pytorch_save and ftn_pytorch_restore"
        )
        if any(is_optimizer(value) for value in lost.values()) or any(encoder.orphans()):
            listed = ", ".join(lost) or "a tensor that its optimizer changes"
            found = "; ".join(encoder.orphans())
            raise FtnPytorchError(
                "RESULT_TYPE",
                f"{path} is not written: a restart would lose {listed}, which no name of {self._script} leads to"
                f"{f' ({found})' if found else ''}: {advice}",
            )
        for place in lost:
            process.warn_once(f"{self._script}: {place} is not kept in checkpoints: {advice}")

    def _label(self) -> str:
        return f"{self._script}: "

    def _apply(self, content: Any, path: str, first: Any = None, only: frozenset[str] | None = None) -> int | None:
        live = self._attached().get(background_runs.NAME)
        if (
            first is not None
            or only is not None
            or content[1] is None
            or background_runs.is_of(content) == (live is not None)
        ):
            return super()._apply(content, path, first, only)
        if live is None:
            try:
                content, others, arrays = background_runs.as_trained(content, path, self._read, self._find_type)
            except NOT_UNDERSTOOD as failure:
                raise not_understood(path, failure) from failure
            about = {**content[0], SHARED_KEY: sorted(others)}
            return super()._apply((about, *content[1:]), path, (None, {"objects": others}, arrays))
        # What does not fit is refused there, before anything is changed here.
        live.restore_elsewhere(path)
        self._is_beside_new = True
        try:
            step = super()._apply(content, path)
        finally:
            self._is_beside_new = False
        live.begin_anew()
        return step

    def _rebinder(self, name: str) -> Rebind | None:
        if any(isinstance(value, Checkpoint) for value in self._namespace.values()):
            return None
        changes = self._known_changes()
        is_assigned = changes.is_assigned(changes.of_global(self._namespace, name))
        is_written = is_assigned or bool(self._found.written.get(name) and name in self._namespace)
        if name in (self._namespace.get(STATE) or ()) or (STATE not in self._namespace and is_written):
            return lambda value: self._namespace.__setitem__(name, value)
        return self._places.putter(name) if self._places and STATE not in self._namespace else None

    def _live(self, saved: Iterable[str]) -> dict[str, Any]:
        # What is written to may have grown into something else than it is at the start.
        named = (
            {} if self._is_declared() else {name: self._namespace[name] for name in saved if name in self._namespace}
        )
        return {**named, **self._collect()}

    def _find_type(self, name: str) -> Any:
        # The script may run under another name than in the process that wrote the file.
        return found_in(self._namespace, name.partition(":")[2]) or find_imported_type(name)


class _HookedCheckpoint(shared.RanksCheckpoint):
    """What ftn_pytorch_save of a script writes, in a file with a checksum that is written as others are."""

    def __init__(
        self,
        save: Callable[[str], None],
        restore: Callable[[str], None],
        script: str,
        session: Session,
        ours: Communicator | None,
    ) -> None:
        super().__init__()
        self._communicator = ours
        self._save, self._restore, self._script, self._session = save, restore, script, session

    def _write(self, path: str, step: int | None) -> None:
        where, name = os.path.split(path)
        part = os.path.join(where, files.part_name(name, "hook"))
        try:
            self._save(part)
            if not os.path.isfile(part):
                raise FtnPytorchError(
                    "HOOK",
                    f"ftn_pytorch_save of {self._script} was asked to write {part} and made no file of that name. "
                    "Some functions add an ending of their own: give them an open file in place of the name",
                )
            with open(part, "rb") as written:
                file.write(
                    path,
                    describe(step, _HOOKED),
                    lambda stream: shutil.copyfileobj(written, stream, 1 << 20),
                    read=self._check,
                )
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

    def _apply(self, content: Any, path: str, first: Any = None, only: frozenset[str] | None = None) -> int | None:
        about, copy = content
        with copy:
            self._restore(copy.name)
        return about.get("step")


def is_checkpoint(path: str) -> bool:
    """True for a file that ``checkpoint`` has written, and not a hook by itself."""
    return file.description(path) is not None
