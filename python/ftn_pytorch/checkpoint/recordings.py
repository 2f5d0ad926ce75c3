# SPDX-License-Identifier: MIT
"""Saved recordings: a checkpoint of a script with the recordings of its functions in it.

A program without Python runs them, goes on from any checkpoint of the script, and writes such. The script restores what
it wrote as any other checkpoint. docs/formats.md has the format.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError
from ..recording.portable import Kept, Plain, Unsavable, portable
from ..recording.recorded_call import Tape
from ..values import optimizer_settings
from . import archive, file, resumption
from .base import Checkpoint
from .capture import Collector
from .script import ScriptCheckpoint

FORMAT = 1
_HOLES = ("step", "written", "host", "rank", "ranks")


class Writer:
    """The state of a script, as live tensors, and the recordings that change it.

    RESULT_TYPE where no checkpoint of it can be written.
    """

    def __init__(self, checkpoint: Checkpoint, path: str, script: str) -> None:
        self._checkpoint, self._path, self._script = checkpoint, path, script
        self._encoder, self._state, self._arrays = live(checkpoint, path)
        self._kept = _kept(self._encoder, self._arrays)

    def plain(self, name: str, tape: Tape) -> Plain:
        """A recording as a file holds it; HOOK if none can."""
        try:
            return portable(tape, self._kept)
        except Unsavable as reason:
            raise refusal(name, str(reason)) from reason

    def write(self, functions: Mapping[str, list[Plain]]) -> None:
        """Write the file, in place of an older one; FILE, LOCKED."""
        if archive.kind_of(self._arrays) != archive.TORCH:
            text = f"{self._path} is not written: among the state of {self._script} is no tensor"
            raise FtnPytorchError("HOOK", text)
        text, others = resumption.entries(self._encoder, self._state, self._arrays)
        about = self._checkpoint._about(None, archive.TORCH, self._encoder)
        others["recording"] = {
            "version": FORMAT,
            "torch": torch.__version__.partition("+")[0],
            "script": self._script,
            "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
            "settings": settings(),
            "description": _description(about),
            "functions": dict(functions),
        }
        with file.locked(self._path):
            file.write(
                self._path, about, lambda stream: archive.write(stream, text, self._arrays, others), kind=file.RECORDING
            )


def live(checkpoint: Checkpoint, path: str) -> tuple[Collector, dict[str, Any], dict[str, Any]]:
    """What a checkpoint would hold now, its trees, and its arrays, which are not copied."""
    encoder = checkpoint._collector()
    encoder._copies = False
    return checkpoint._encoded(path, encoder)


def refusal(name: str, why: str) -> FtnPytorchError:
    """The failure for a function that no file can hold."""
    return FtnPytorchError("HOOK", f"{name} cannot be saved: {why}")


def settings() -> dict[str, Any]:
    """Settings of kernels on which numbers depend."""
    return {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_tf32": torch.backends.cudnn.allow_tf32,
    }


def save_recording(path: str, functions: Mapping[str, Callable], names: Mapping[str, Any] | None = None) -> str:
    """Write recorded functions, and the state that they change, to a file that runs without Python.

    functions: what ``recorded`` returned, by the names under which a program calls them. Each is to be ready: it has
    run until calls like the last one run without Python. ``ftn_pytorch_forward`` and ``ftn_pytorch_train`` are
    ``forward`` and ``train_step`` of Fortran.

    names: the names that lead to the state; by default those of the module of the first function.

    The absolute path. HOOK for a function that is not ready, or that no file can hold; the text says why. RESULT_TYPE,
    FILE, LOCKED as for a checkpoint.
    """
    if not functions:
        raise FtnPytorchError("ARGUMENT", "save_recording is given no function")
    found = {name: tapes_of(name, function) for name, function in functions.items()}
    first: Any = next(iter(functions.values()))
    namespace = dict(names) if names is not None else first.__wrapped__.__globals__
    checkpoint = ScriptCheckpoint(namespace.get("__file__", "the script"), {})
    checkpoint.use(namespace)
    return write(path, found, checkpoint, namespace.get("__name__", ""))


def write(path: str, functions: Mapping[str, list[Tape]], checkpoint: Checkpoint, script: str) -> str:
    """The same for the tapes of functions."""
    target = file.resolve(path)
    writer = Writer(checkpoint, target, script)
    writer.write({name: [writer.plain(name, each) for each in tapes] for name, tapes in functions.items()})
    return target


def tapes_of(name: str, function: Any) -> list[Tape]:
    """The recordings of a function that are ready; HOOK if there are none."""
    recording = getattr(function, "recording", None)
    if recording is None:
        raise refusal(name, "it is not recorded: decorate it with ftn_pytorch.recorded, or load with record=")
    if not recording.is_ready:
        why = recording.obstacle or "it has not run often enough: call it until it is ready, seven times as a rule"
        raise refusal(name, why)
    return recording.tapes()


def _kept(encoder: Collector, arrays: Mapping[str, Any]) -> Kept:
    memory: dict[int, list[str]] = {}
    for name, each in arrays.items():
        if isinstance(each, torch.Tensor) and each.numel():
            memory.setdefault(each.untyped_storage().data_ptr(), []).append(name)
    numbers = {
        (id(source.group), source.key, source.item): name
        for name, source in optimizer_settings.names_of(encoder.optimizers()).items()
    }
    return Kept(memory, numbers)


def _description(about: Mapping[str, Any]) -> list[resumption.Piece]:
    """The description of a checkpoint in pieces; what depends on when and where it is written is left open."""
    mark = uuid.uuid4().hex
    marked = {**about, **{name: f"{mark}{name}{mark}" for name in _HOLES}, "job": None}
    return resumption.pieces_of(json.dumps(marked), mark)
