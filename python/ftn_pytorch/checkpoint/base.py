# SPDX-License-Identifier: MIT
"""``Checkpoint``: named objects and values, written to and read from one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import FtnPytorchError, report
from ..ranks import own_rank
from ..system import fair_lock, process, trial
from ..values import is_tensor, random_states
from ..values.encoding import Unstorable, decode
from ..values.graph import Graph
from ..values.user_objects import find_imported_type
from . import archive, content, file, folder, optimizers, resumption
from .capture import Collector
from .comparing import CLASS, TO
from .content import understood
from .restoring import Order, Rebind, Restorer, plain

# In the description of a file: fields of objects that were not kept. Files of before, which held less, lack it.
LEFT_OUT = "left_out"
# In the description of a file: it holds what is another than right after the load, and no more.
COMPARED = "compared"
# Names of objects that are the same on all ranks, of which only the file of rank 0 holds the states.
SHARED_KEY = "shared"
_INSIDE = (".", "/", TO, CLASS)
_FALLS_BACK = ("CORRUPT", "FORMAT", "FILE")

Encoded = tuple[Collector, dict[str, Any], dict[str, Any]]
"""What made the trees, the state as trees, and the arrays in it."""


class Checkpoint:
    """State of objects and values, in files that a crash cannot leave half-written.

    ::

        checkpoint = Checkpoint(net=net, optimizer=optimizer, scheduler=scheduler, buffer=buffer, counters=counters)
        checkpoint.write("checkpoints", keep=3)      # a file of a folder, named by its step
        checkpoint.restore("checkpoints")            # the newest of them

    What has ``state_dict`` and ``load_state_dict`` keeps that; so do torch.Generator, numpy.random.Generator and
    random.Random. Lists, tuples and dicts may hold such objects. Other values are restored in place: lists, dicts,
    sets, deques, arrays, tensors, with contents as ``tree`` lists them. Numbers and texts go into a dict. The random
    states of the process (Python, NumPy, torch, CUDA) are always part of it.

    ``%r`` in the name of a file or folder becomes the MPI rank. Failures are FtnPytorchError.
    """

    # What a restored config is compared with; set by those who know it.
    config: Mapping[str, Any] | None = None

    # What messages begin with.
    _label = ""

    # Among the names of a script it says what the state of that is.
    _is_declaration = True

    # What the names led to right after the load, where somebody has seen that.
    _first: Graph | None = None

    def __init__(self, objects: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        self._objects = {**(objects or {}), **named}
        for name, value in self._objects.items():
            if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
                kind = type(value).__name__
                raise FtnPytorchError(
                    "ARGUMENT", f"{name} is of type {kind}, which cannot be restored in place: keep it in a dict"
                )
        self._session = folder.Session()

    def of(self, objects: Mapping[str, Any]) -> Checkpoint:
        """The same for other objects; folders that this one has locked stay its own."""
        self._objects = dict(objects)
        return self

    def save(self, path: str | os.PathLike[str], *, step: int | None = None) -> str:
        """Write one file, in place of an older one of that name; returns its absolute path.

        FILE if it cannot be written (the old one stays), LOCKED if another process is writing it, or if another rank of
        this job has written it, RESULT_TYPE if something cannot be stored.
        """
        target = file.resolve(path)
        if trial.is_on():
            return target
        with fair_lock.lock(), file.locked(target):
            self._write(target, step)
        return target

    def write(self, path: str | os.PathLike[str], *, keep: int = 3, step: int | None = None) -> str:
        """Write the next file of a folder and keep the newest ``keep`` of them; returns its absolute path.

        ``step`` names the file and orders the files; by default one more than the last. The folder is made if it is
        missing, and locked for other writers from now on. Errors are those of ``save``, and ARGUMENT for a
        step that comes before one that is there.
        """
        if trial.is_on():
            return file.resolve(path)
        with fair_lock.lock():
            return self._session.write(file.resolve(path), keep, step, self._write_alone)

    def restore(self, path: str | os.PathLike[str], *, step: int | None = None, fallback: bool = False) -> int | None:
        """Put back what a file holds, or the newest file of a folder; returns its step.

        ``step`` asks for that one, also of a file. With ``fallback`` a file that is damaged or foreign is passed over,
        with a warning, and the one before it is used. NO_CHECKPOINT if there is none, CORRUPT if it is damaged, FORMAT
        if it is no checkpoint or does not fit; nothing has been changed then.
        """
        place = file.resolve(path)
        if not os.path.exists(place):
            folder.prepare(place)
            has_first = "%r" in str(path) and os.path.exists(str(path).replace("%r", "0"))
            advice = ". Its state may be in a file that ranks of a node share: load with communicator=" * has_first
            raise FtnPytorchError("NO_CHECKPOINT", f"{place} does not exist, so there is nothing to restore{advice}")
        with fair_lock.lock():
            if not os.path.isdir(place):
                content = self._read(place)
                file.require_step(content[0].get("step"), step, place)
                return self._apply(content, place)
            entries = folder.candidates(place, step)
            entry, content = self._read_newest(entries, place, fallback, lambda entry: self._read(entry.path))
            self._apply(content, entry.path)
            self._session.went_on_from(place, entry.step)
            return entry.step

    @staticmethod
    def read(path: str | os.PathLike[str]) -> dict[str, Any]:
        """What a file, or the newest of a folder, says of itself, and ``objects``, ``config`` and ``random`` in it.

        Objects are given as the states that they had. A file of a script with hooks of its own holds the first only.
        """
        place = file.resolve(path)
        if os.path.isdir(place):
            place = folder.candidates(place, None)[0].path
        about, state, arrays, _ = content.read(place)
        if state is None:
            return about
        with understood(place):
            found = decode(plain(state), arrays, find_imported_type)
            objects = {name.removesuffix(TO): each for name, each in found["objects"].items() if name.endswith(TO)}
            return {**about, **found, "objects": {**found["objects"], **objects}}

    # What those do differently that find their objects in a script, or have hooks.

    def _collect(self) -> dict[str, Any]:
        """Objects and values by name."""
        return self._objects

    def _rebinder(self, name: str) -> Rebind | None:
        """How a name is bound to another value, None if it cannot be."""
        return None

    def _live(self, saved: Iterable[str]) -> dict[str, Any]:
        """Objects and values by name; ``saved`` names those that a file holds."""
        return self._collect()

    def _transient(self) -> frozenset[str]:
        """Paths of what a restart may lose."""
        return frozenset()

    def _collector(self, copies: bool = True) -> Collector:
        return Collector(Graph(dict(self._collect())), copies=copies)

    def _trees(self, encoder: Collector) -> dict[str, Any]:
        """What a file holds, by name."""
        return {name: encoder.encode(value, name) for name, value in self._collect().items()}

    def _advice(self, failure: Unstorable) -> str:
        """What to do about what cannot be kept."""
        return (
            "which no checkpoint can hold. Keep tensors, arrays, numbers, "
            "strings and lists or dicts of them, or give the object that holds it state_dict and load_state_dict"
        )

    def _find_type(self, name: str) -> Any:
        """Class of named tuples, and of objects of a user's own classes."""
        return find_imported_type(name)

    def _write_alone(self, path: str, step: int | None) -> None:
        """``_write``, but not in place of what another rank of this job has written."""
        file.refuse_other_rank(path)
        self._write(path, step)

    def _write(self, path: str, step: int | None) -> None:
        file.write(path, *self._content_of(step, self._encoded(path)), read=self._check)

    def _check(self, path: str) -> None:
        """Read a file that was just written."""
        content.check(path, self._find_type, self._first)

    def _content_of(
        self, step: int | None, encoded: Encoded, more: Mapping[str, Any] | None = None, parts: Any = None
    ) -> tuple[dict[str, Any], Callable[[Any], None]]:
        """Description of a file, and what writes its archive. ``more`` is part of the description."""
        encoder, state, arrays = encoded
        about = {**self._about(step, archive.kind_of(arrays), encoder), **(more or {})}
        others: dict[str, Any] = {}
        text: Any = state
        if about["archive"] == archive.TORCH:
            text, others = resumption.entries(encoder, state, arrays)
        return about, lambda stream: archive.write(stream, text, arrays, others, parts)

    def _encoded(self, path: str, copies: bool = True) -> Encoded:
        """The state as trees, and the arrays in it. ``copies``: nothing changes them before they are written."""
        encoder = self._collector(copies)
        try:
            state = {
                "objects": self._trees(encoder),
                "config": encoder.encode(_on_host(self.config or {}), "config"),
                "random": encoder.encode(random_states.capture(), "random"),
            }
            optimizers.note_trained(encoder)
            self._check_kept(encoder, path)
        except Unstorable as failure:
            raise FtnPytorchError(
                "RESULT_TYPE",
                f"{path} cannot be written: {failure}, {self._advice(failure)}",
            ) from failure
        return encoder, state, encoder.arrays

    def _about(self, step: int | None, kind: str, encoder: Collector) -> dict[str, Any]:
        return {**file.describe(step, kind), LEFT_OUT: sorted(encoder.left_out)}

    def _check_kept(self, encoder: Collector, path: str) -> None:
        """RESULT_TYPE if something would be lost that a restart needs, a warning if that may be so."""
        for lost in encoder.orphans():
            raise FtnPytorchError(
                "RESULT_TYPE",
                f"{path} is not written: {lost}, which nothing that is kept holds, so that a restart would lose it. "
                "Give the network a name beside the optimizer (net = helpers.net), and name it in ftn_pytorch_state "
                "or Checkpoint(...) where there is one",
            )
        for place, kind in encoder.lost.items():
            process.warn_once(f"{self._label}{place} is {kind}, which is not kept in checkpoints")

    def _read(self, path: str) -> Any:
        """Content of a file, nothing of it applied yet."""
        return content.read(path)

    def _apply(self, content: Any, path: str, only: frozenset[str] | None = None) -> int | None:
        """Put the content of a file back; its step.

        ``only``: names to be restored; all others stay as they are, and so do random states.
        """
        about, state, arrays, *_ = content
        if state is None:
            raise FtnPytorchError(
                "FORMAT", f"{path} was written by ftn_pytorch_save of a script, which is needed to read it"
            )
        restorer = self._restorer(about, arrays)
        with understood(path):
            self._add_all(restorer, about, state["objects"], only)
            saved_random = restorer.value_of(state["random"])
            config = dict(restorer.value_of(state["config"]))
        if restorer.misfits:
            found = "; ".join(restorer.misfits[:5])
            raise FtnPytorchError("FORMAT", f"{path} does not fit what is to be restored: {found}")
        if only is None:
            # What is first is the last to be undone.
            for states, order in ((random_states.capture(), Order.FIRST), (saved_random, Order.LAST)):
                restorer.change(random_states.capture, random_states.restore, states, order)
        try:
            restorer.run()
        except Exception as failure:
            raise FtnPytorchError(
                "FORMAT", f"{path} does not fit what is to be restored: {report(failure)}"
            ) from failure
        if only is None:
            self._warn_of_config(config, path)
            warn_of_other_rank(about, path)
        return about.get("step")

    def _restorer(self, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Restorer:
        return Restorer(arrays, self._find_type)

    def _add_all(
        self, restorer: Restorer, about: Mapping[str, Any], saved: Mapping[str, Any], only: frozenset[str] | None
    ) -> None:
        """Note what is to be done for all trees, and what does not fit."""
        restorer.owners = live = self._live(saved)
        left = {*self._transient(), *(about.get(LEFT_OUT) or ())}
        for name in dict.fromkeys((*saved, *live)):
            if name in self._transient() or (only is not None and not is_of(name, only)):
                continue
            if name not in saved:
                if name not in left:
                    restorer.misfits.append(missing(name, about))
            elif name not in live and self._rebinder(name) is None:
                advice = ": create it before restore" if name.startswith("torch_") else ""
                restorer.misfits.append(f"there is no {name!r} here{advice}")
            else:
                restorer.add(live.get(name), saved[name], name, self._rebinder(name))

    def _read_newest(
        self, entries: list[folder.Entry], place: str, fallback: bool, read: Callable[[folder.Entry], Any]
    ) -> tuple[folder.Entry, Any]:
        """The first of these that can be read; with ``fallback`` those before it are passed over with a warning."""
        failures: list[str] = []
        for entry in entries:
            try:
                content = read(entry)
            except FtnPytorchError as failure:
                if failure.status not in _FALLS_BACK:
                    raise
                if not fallback:
                    advice = f"; fallback uses the one of step {entries[1].step} before it" if len(entries) > 1 else ""
                    raise FtnPytorchError(failure.status, f"{failure.text}{advice}") from failure
                failures.append(failure.text)
                continue
            for text in failures:
                process.warn(f"{text}; used instead: {entry.path}")
            return entry, content
        raise FtnPytorchError("CORRUPT", f"the folder {place} holds no checkpoint that is whole: {'; '.join(failures)}")

    def _warn_of_config(self, saved: Mapping[str, Any], path: str) -> None:
        if self.config is None:
            return
        here = {name: _comparable(value) for name, value in _on_host(self.config).items()}
        there = {name: _comparable(value) for name, value in saved.items()}
        different = [name for name in sorted(set(here) | set(there)) if here.get(name) != there.get(name)]
        if different:
            process.warn(
                f"{path} was written with another config: {', '.join(different)}. What the script derived from it "
                "before the restart, such as a learning rate, is that of the file"
            )


def missing(name: str, about: Mapping[str, Any]) -> str:
    is_of_first = is_of(name, about.get(SHARED_KEY) or ())
    advice = ", which that of rank 0 has: load with communicator=" if is_of_first else ""
    return f"the file has no {name!r}{advice}"


def is_of(path: str, names: Iterable[str]) -> bool:
    """True for one of these names, and for what is in it."""
    return any(path == name or path.startswith(tuple(name + end for end in _INSIDE)) for name in names)


def warn_of_other_rank(about: Mapping[str, Any], path: str) -> None:
    """Ranks that all go on from the file of one draw the same random numbers, and train on the samples of that one."""
    rank, ranks = own_rank.rank_and_size()
    if ranks > 1 and (about.get("ranks") or 1) > 1 and about.get("rank") != rank:
        process.warn_once(
            f"{path} was written by rank {about.get('rank')}: random states, buffers and config are those of that one. "
            "Where ranks train together each needs a file of its own: write %r for the rank"
        )


def _on_host(config: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays of a config are tensors in a process with torch, and what a NumPy script writes is to need no torch."""
    return {name: value.numpy() if is_tensor(value) else value for name, value in config.items()}


def _comparable(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
