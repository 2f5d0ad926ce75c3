# SPDX-License-Identifier: MIT
"""Saved recordings: a checkpoint of a script with the recordings of its functions in it.

A program without Python runs them, goes on from any checkpoint of the script, and writes such. The script restores what
it wrote as any other checkpoint. docs/ftr-format.md has the format.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import types
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from ..checkpoint import archive, file, resumption
from ..checkpoint.base import Checkpoint
from ..checkpoint.capture import Collector
from ..checkpoint.script import ScriptCheckpoint
from ..errors import FtnPytorchError
from ..recording.function import RecordedFunction
from ..recording.operations import address_of, is_ordinary
from ..recording.tape import Tape
from ..system import log, trial
from ..values import graph, optimizer_settings
from . import compiled, kernel_settings, reads, saved_recording, verification
from .distinct import changes, distinct
from .portable import Kept, Plain, Unsavable, dtype_name, identity, portable

FORMAT = 2
"""Of recordings in a file, as in src/ftr/program.cpp."""
_HOLES = ("step", "written", "host", "rank", "ranks", "job", file.RANK_OF_JOB)


class Writer:
    """The state of a script, as live tensors, and the recordings that change it.

    RESULT_TYPE where no checkpoint of it can be written.
    """

    def __init__(self, checkpoint: Checkpoint, path: str, script: str, tapes: Iterable[Tape] = ()) -> None:
        """``tapes``: those that will be written. Gradients that they set are part of the state from the start."""
        self._checkpoint, self._path, self._script = checkpoint, path, script
        self._tapes: dict[str, list[Tape]] = {}
        with _with_gradients(tapes) as parameters:
            self._encoder, self._state, arrays = live(checkpoint, path)
            self._kept = _kept(self._encoder, arrays, parameters)
        there = {name for each in parameters if each.grad is None for name in self._kept.gradients.get(id(each), [])}
        self._arrays = {name: each for name, each in arrays.items() if name not in there}
        for name, each in self._arrays.items():
            if not isinstance(each, torch.Tensor):
                continue
            try:
                dtype_name(each.dtype)
            except Unsavable as reason:
                raise FtnPytorchError("RESULT_TYPE", f"{path} cannot be written: {name} has {reason}") from reason

    def plain(self, name: str, tapes: list[Tape]) -> list[Plain]:
        """Recordings of a function, as a file holds them; HOOK if none can."""
        try:
            for tape in tapes:
                for what, values in changes(tape):
                    log.info(f"{name} is saved as it was recorded: {what} is another one now ({values})")
            chosen = distinct([(tape, portable(tape, self._kept)) for tape in tapes])
        except Unsavable as reason:
            raise refusal(name, str(reason)) from reason
        self._tapes[name] = [tape for tape, _ in chosen]
        return [plain for _, plain in chosen]

    def write(
        self, functions: Mapping[str, list[Plain]], compares: bool = True, code: Mapping[str, bytes] | None = None
    ) -> None:
        """Write the file, in place of an older one; FILE, LOCKED.

        compares: each of ``plain`` runs once out of the file; HOOK if it gives other numbers than in the script.
        code: further records of the archive.
        """
        text, others = resumption.entries(self._encoder, self._state, self._arrays)
        about = self._checkpoint._about(None, archive.TORCH, self._encoder)
        others["recording"] = {
            "version": FORMAT,
            "torch": torch.__version__.partition("+")[0],
            "script": self._script,
            "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
            "settings": kernel_settings.current(),
            "description": _description(about),
            "functions": dict(functions),
            "parameters": [(each.replace("/", "."), each) for each in dict.fromkeys(_parameters(self._state))],
            "read": reads.of(itertools.chain.from_iterable(self._tapes.values()), self._encoder, self._state),
        }

        def fill(stream: Any) -> None:
            archive.write(stream, text, self._arrays, others)

        with file.locked(self._path):
            file.write(
                self._path,
                about,
                fill if code is None else lambda stream: compiled.write_with(stream, fill, code),
                file.RECORDING,
                lambda part: self._check(part, self._tapes if compares else {}),
            )

    def _check(self, path: str, tapes: Mapping[str, list[Tape]]) -> None:
        """A program runs it and gets the numbers of the script, and the script restores it."""
        self._checkpoint._check(path)
        saved_recording.opened(path, starts_generator=False)
        verification.verify(path, tapes, self._arrays, self._kept.gradients)


def live(checkpoint: Checkpoint, path: str) -> tuple[Collector, dict[str, Any], dict[str, Any]]:
    """What a checkpoint would hold now, its trees, and its arrays, which are not copied."""
    return checkpoint._encoded(path, copies=False)


def refusal(name: str, why: str) -> FtnPytorchError:
    """The failure for a function that no file can hold."""
    return FtnPytorchError("HOOK", f"{name} cannot be saved: {why}")


def save_recording(path: str, functions: Mapping[str, Callable], names: Mapping[str, Any] | None = None) -> str:
    """Write recorded functions, and the state that they change, to a file that runs without Python.

    functions: what ``recorded`` returned, by the names under which a program calls them. Each is to be ready: it has
    run until calls like the last one run without Python. ``ftn_pytorch_forward`` and ``ftn_pytorch_train`` are
    ``forward`` and ``train_step`` of Fortran.

    names: the names that lead to the state; by default those of the module of the first function.

    The absolute path. HOOK for a function that is not ready, that no file can hold, or that gives other numbers out of
    the file; the text says why. RESULT_TYPE,
    FILE, LOCKED as for a checkpoint.
    """
    if not functions:
        raise FtnPytorchError("ARGUMENT", "save_recording is given no function")
    found = {name: tapes_of(name, function) for name, function in functions.items()}
    first: Any = next(iter(functions.values()))
    namespace: Any = names if names is not None else _names_around(first)
    checkpoint = ScriptCheckpoint(namespace.get("__file__", "the script"), {})
    checkpoint.use(namespace, graph.known(namespace))
    return write(path, found, checkpoint, namespace.get("__name__", ""))


def write(path: str, functions: Mapping[str, list[Tape]], checkpoint: Checkpoint, script: str) -> str:
    """The same for the tapes of functions."""
    target = file.resolve(path)
    if trial.is_on():
        return target
    writer = Writer(checkpoint, target, script, [each for tapes in functions.values() for each in tapes])
    writer.write({name: writer.plain(name, tapes) for name, tapes in functions.items()})
    return target


def recording_of(function: Any) -> RecordedFunction | None:
    """What ``recorded`` has made of a function; other objects, such as this package, have such an attribute, too."""
    recording = getattr(function, "recording", None)
    return recording if isinstance(recording, RecordedFunction) else None


def tapes_of(name: str, function: Any) -> list[Tape]:
    """The recordings of a function that are ready; HOOK if there are none."""
    recording = recording_of(function)
    if recording is None:
        raise refusal(name, "it is not recorded: decorate it with ftn_pytorch.recorded, or load with record=.true.")
    if not recording.is_ready:
        why = recording.obstacle or "it has not run often enough: call it until it is ready, seven times as a rule"
        raise refusal(name, why)
    tapes: list[Tape] = recording.tapes()
    if not isinstance(function, types.MethodType):
        return tapes
    # a method is saved for one object, which a program does not pass
    own = [each for each in tapes if each.arguments and each.arguments[0].value is function.__self__]
    if not own:
        raise refusal(name, "it is recorded for other objects of its class, and not for this one")
    return [dataclasses.replace(each, arguments=each.arguments[1:]) for each in own]


def _names_around(function: Any) -> dict[str, Any]:
    """Those of the module of a function."""
    space = getattr(getattr(function, "__wrapped__", None), "__globals__", None)
    if space is None:
        raise FtnPytorchError(
            "ARGUMENT", "save_recording needs names=, since what is recorded is no function of a script"
        )
    return space


@contextlib.contextmanager
def _with_gradients(tapes: Iterable[Tape]) -> Iterator[list[Any]]:
    """The parameters whose gradients recordings use or set. Those that have none have one meanwhile, so that it gets
    its names.
    """
    used = [each[0] for tape in tapes for each in (*tape.gradients_before, *tape.gradients_after)]
    parameters = list({id(each): each for each in used}.values())
    without = [each for each in parameters if each.grad is None]
    try:
        for each in without:
            each.grad = torch.empty_like(each)
        yield parameters
    finally:
        for each in without:
            each.grad = None


def _kept(encoder: Collector, arrays: Mapping[str, Any], parameters: Iterable[Any]) -> Kept:
    names: dict[tuple, list[str]] = {}
    storages: dict[int, Any] = {}
    for name, each in arrays.items():
        if isinstance(each, torch.Tensor) and is_ordinary(each) and each.numel():
            names.setdefault(identity(each), []).append(name)
            storages.setdefault(address_of(each), each)
    numbers = {
        (id(source.group), source.key, source.item): name
        for name, source in optimizer_settings.names_of(encoder.optimizers()).items()
    }
    gradients = {id(each): names.get(identity(each.grad), []) for each in parameters if each.grad is not None}
    return Kept(storages, gradients, numbers)


def _parameters(node: Any) -> Iterator[str]:
    """Names of the arrays of a state that are parameters, in modules and outside of any."""
    if isinstance(node, list):
        for each in node:
            yield from _parameters(each)
    elif isinstance(node, dict):
        if node.get("~") == "tensor" and node.get("grad"):
            yield node["at"]
        flags = node.get("requires_grad")
        if node.get("~") == "object" and isinstance(flags, dict):
            arrays = dict(node["state"]["items"])
            yield from (arrays[name]["at"] for name in flags)
        for each in node.values():
            yield from _parameters(each)


def _description(about: Mapping[str, Any]) -> list[resumption.Piece]:
    """The description of a checkpoint in pieces; what depends on when and where it is written is left open."""
    mark = uuid.uuid4().hex
    marked = {**about, **{name: f"{mark}{name}{mark}" for name in _HOLES}}
    return resumption.pieces_of(json.dumps(marked), mark)
