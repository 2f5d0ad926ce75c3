# SPDX-License-Identifier: MIT
"""Checkpoints of a script that does not know of them, and hooks of its own.

What is another than right after the load is the state of a script (see ``values.graph``): kept, or the file is not
written. Always kept are objects that have a state, tensors and arrays. Names with ``__`` at both ends, hooks and
declarations (``ftn_pytorch_...``) are no state, nor is what ``ftn_pytorch_transient`` names. ``ftn_pytorch_state =
["net", "step"]`` names the state instead; so does a ``Checkpoint`` among the names.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import FtnPytorchError
from ..ranks.communicator import Communicator
from ..script.conventions import PREFIX, SHARED, STATE, TRANSIENT
from ..system import files, log, process
from ..values import contents
from ..values.encoding import Unstorable
from ..values.graph import CODE, LAYERS, Graph
from ..values.kinds import Kind, kind_of
from ..values.user_objects import find_imported_type, found_in
from . import background_runs, file, shared, together
from .base import COMPARED, LEFT_OUT, Checkpoint, is_of, missing
from .capture import Collector
from .comparing import Changes
from .content import understood
from .going_back import GoingBack
from .restoring import Rebind, Restorer
from .stateful import access_to

_HOOKED = "hook"


class ScriptCheckpoint(shared.RanksCheckpoint):
    """The state of a script: what its names lead to, held against what they led to right after the load."""

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
        self._script, self._label = path, f"{path}: "
        self._namespace: dict[str, Any] = {}
        self._told = ""

    def use(self, namespace: dict[str, Any], first: Graph | None) -> None:
        """Go on with these names, those of the script, which are others after it was loaded again.

        ``first``: what they led to after the load; without it all is kept that can be.
        """
        self._namespace, self._first = namespace, first

    def hooked(self, save: Callable[[str], None], restore: Callable[[str], None]) -> Checkpoint:
        """The same for a script with hooks: they write and read what is kept."""
        for name in self._attached():
            process.warn_once(
                f"{self._script}: {name} is not in what ftn_pytorch_save writes: call save for it, with another file"
            )
        return _HookedCheckpoint(self, save, restore)

    def write(self, path: str | os.PathLike[str], *, keep: int = 3, step: int | None = None) -> str:
        path = os.fspath(path)
        ours, names = self._communicator, shared.declared(self._namespace, self._script)
        if ours is None or "%r" not in path or not names:
            return super().write(path, keep=keep, step=step)
        return together.write(self, ours, path, keep, step, names)

    def require_kept(self, listed: list[str], trees: Mapping[str, Any]) -> None:
        """SCRIPT if one of these names is not kept, or holds something together with others."""
        state = {} if self._baseline is None else self._baseline.root.fields
        held = {name for name in state if kind_of(self._namespace.get(name)) not in CODE}
        unknown = [name for name in listed if name not in held and not any(is_of(each, [name]) for each in trees)]
        if unknown:
            raise FtnPytorchError(
                "SCRIPT",
                f"{self._script}: {SHARED} names {', '.join(unknown)}, which is not kept in checkpoints: it is "
                f"none of {', '.join(trees)}",
            )
        together.require_apart(trees, listed, self._script)

    def _collect(self) -> dict[str, Any]:
        """What is kept as a whole, by name."""
        own, declared = self._own(), self._namespace.get(STATE)
        if len(own) > 1:
            raise FtnPytorchError(
                "HOOK", f"{self._script} has {len(own)} objects Checkpoint: leave one, or define ftn_pytorch_save"
            )
        if own:
            found = own[0]._collect()
        elif declared is not None:
            shared.require_names(declared, self._script, STATE, "net", self._namespace.__contains__)
            found = {name: self._namespace[name] for name in declared}
        else:
            found = {} if self._first is not None else dict(self._namespace)
        return {**found, **self._attached()}

    @property
    def _baseline(self) -> Graph | None:
        """What the state is held against; None where the script says what is kept, or nobody has seen its load."""
        return None if self._is_declared() else self._first

    def _is_declared(self) -> bool:
        return STATE in self._namespace or bool(self._own())

    def _own(self) -> list[Checkpoint]:
        found = [each for each in self._namespace.values() if isinstance(each, Checkpoint)]
        return [each for each in found if each._is_declaration]

    def _collector(self, copies: bool = True) -> Collector:
        transient, first = self._transient(), self._baseline
        if first is None:
            return Collector(Graph(dict(self._collect()), transient), None, copies, transient, self._find_type)
        return Changes(Graph(self._namespace, transient, PREFIX), first, copies, transient, self._find_type)

    def _trees(self, encoder: Collector) -> dict[str, Any]:
        if self._is_declared():
            return super()._trees(encoder)
        if not isinstance(encoder, Changes):
            return encoder.storable(self._collect())
        trees = encoder.changes()
        trees.update({name: encoder.with_state(each, name) for name, each in self._attached().items()})
        left = ", ".join(f"{name} ({why})" for name, why in {**encoder.left_out, **encoder.lost}.items())
        told = f"kept in checkpoints: {', '.join(trees) or 'nothing'}; left out: {left or 'nothing'}"
        if told != self._told:
            log.info(f"{self._script}: {told}")
            self._told = told
        return trees

    def _about(self, step: int | None, kind: str, encoder: Collector) -> dict[str, Any]:
        return {**super()._about(step, kind, encoder), **({} if self._baseline is None else {COMPARED: True})}

    def _transient(self) -> frozenset[str]:
        listed = self._namespace.get(TRANSIENT, ())
        # Paths beside names are not looked for, and some names are made by a call.
        shared.require_names(
            listed,
            self._script,
            TRANSIENT,
            "logger",
            lambda name: not name.isidentifier() or name in self._namespace or bool(self._lines_with(name)),
        )
        return frozenset(listed)

    def _advice(self, failure: Unstorable) -> str:
        if self._baseline is None:
            return super()._advice(failure)
        line = self._line_of(str(failure))
        return (
            f"and is another one than right after the load{line}, so that a restart would lose that. Name it in "
            f"{TRANSIENT} if it may be lost, or else keep what is in it in tensors, arrays, numbers, texts, lists and "
            f"dicts, give it state_dict and load_state_dict, or say in {STATE} what is to be kept"
        )

    def _line_of(self, text: str) -> str:
        """Where the code writes to what a text begins with, or mentions it."""
        path = text.partition(" ")[0]
        name = re.findall(r"[^\W\d]\w*|$", path)[-2:][0]
        lines = [each for each in self._lines_with(name) if name]
        fields = [each for each in lines if "." in path and f".{name}" in each and "__init__" not in each]
        written = re.compile(rf"\b{name}\b[^=(]*([-+*/|&@]|//|\*\*)?=[^=]|next\(")
        found = [*filter(written.search, fields), *fields, *filter(written.search, lines), *lines][:1]
        return f": {found[0]}" if found else ""

    def _lines_with(self, name: str) -> list[str]:
        """Lines of functions that mention a name: ``model.py:12 (n += 1)``."""
        found = []
        nodes = (self._first or Graph(dict(self._namespace))).nodes.values()
        for source in [each.value.get("__file__") or "" for each in nodes if each.kind is Kind.NAMESPACE]:
            with contextlib.suppress(OSError, ValueError), open(source, encoding="utf-8") as stream:
                for number, line in enumerate(stream, 1):
                    if re.search(rf"\b{name}\b", line) and re.match(r"\s|def |async def ", line):
                        found.append(f"{source}:{number} ({line.strip()})")
        return found

    def _apply(self, content: Any, path: str, only: frozenset[str] | None = None) -> int | None:
        live = self._attached().get(background_runs.NAME)
        if content[1] is None or background_runs.is_of(content) == (live is not None):
            return super()._apply(content, path, only)
        if live is None:
            with understood(path):
                content = background_runs.as_trained(content, path, self._find_type)
            return super()._apply(content, path)
        # What does not fit is refused there, before anything is changed here.
        live.restore_elsewhere(path)
        step = super()._apply(background_runs.beside(content), path)
        live.begin_anew()
        return step

    def _restorer(self, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Restorer:
        first = self._baseline if about.get(COMPARED) is True else None
        kind = Restorer if first is None else GoingBack
        return kind(arrays, self._find_type, first)

    def _add_all(
        self, restorer: Restorer, about: Mapping[str, Any], saved: Mapping[str, Any], only: frozenset[str] | None
    ) -> None:
        if not isinstance(restorer, GoingBack):
            super()._add_all(restorer, about, saved, only)
            return
        transient, attached = self._transient(), self._attached()
        left = frozenset((*transient, *(about.get(LEFT_OUT) or ())))
        restorer.owners = {name: node.value for name, node in restorer.first.named.items()}
        if only is None:
            restorer.take_back(left, Graph(self._namespace, transient, PREFIX))
        restorer.has_other_layers |= any(name.endswith(LAYERS) for name in saved)
        for name, tree in saved.items():
            if is_of(name, transient) or (only is not None and not is_of(name, only)):
                continue
            if name in attached:
                restorer.add(attached[name], tree, name, None)
            elif name.startswith("torch_") and name not in restorer.first.named:
                restorer.misfits.append(f"there is no {name!r} here: create it before restore")
            else:
                restorer.add_change(name, tree)
        wanted = [*restorer.wanted(left), *(name for name in attached if name not in left)]
        restorer.misfits += [
            missing(name, about) for name in wanted if name not in saved and (only is None or is_of(name, only))
        ]

    def _rebinder(self, name: str) -> Rebind | None:
        if self._is_declared():
            is_named = not self._own() and name in (self._namespace.get(STATE) or ())
            return functools.partial(self._namespace.__setitem__, name) if is_named else None
        place = None if self._first is None else self._first.find(name)
        return place and functools.partial(contents.put, place.node.value, place.node.kind, place.key)

    def _live(self, saved: Iterable[str]) -> dict[str, Any]:
        first = self._baseline
        if first is None:
            return self._collect()
        # A file of before: what it holds, and what no file lacks.
        found = {}
        for name in saved:
            place, node = first.find(name), first.named.get(name)
            if place is not None and place.key in (held := first.fields_of(place.node)):
                found[name] = held[place.key]
            elif node is not None:
                found[name] = node.value
        known = set(map(id, found.values()))
        kept = {name: each for name, each in first.root.fields.items() if access_to(each) is not None}
        return {**found, **{name: each for name, each in kept.items() if id(each) not in known}, **self._attached()}

    def _find_type(self, name: str) -> Any:
        # The script may run under another name than in the process that wrote the file.
        return found_in(self._namespace, name.partition(":")[2]) or find_imported_type(name)


class _HookedCheckpoint(shared.RanksCheckpoint):
    """What ftn_pytorch_save of a script writes, in a file with a checksum that is written as others are."""

    def __init__(self, of: ScriptCheckpoint, save: Callable[[str], None], restore: Callable[[str], None]) -> None:
        super().__init__()
        self._script, self._session, self._communicator = of._script, of._session, of._communicator
        self._save, self._restore = save, restore

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
                    file.describe(step, _HOOKED),
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

    def _apply(self, content: Any, path: str, only: frozenset[str] | None = None) -> int | None:
        about, copy = content
        with copy:
            self._restore(copy.name)
        return about.get("step")
