# SPDX-License-Identifier: MIT
"""The runner for a pickled ``torch.nn.Module``, and the advice for files of parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import OF_MAIN, FtnPytorchError, message, summary
from ...script import compiling, loading
from ...script.framework import TORCH, import_torch
from ...system import process
from ...tensors import device
from . import formats
from .saved_model import SavedRunner

_ADVICE = (
    "Load a script that builds the network and reads this file with torch.load(file, weights_only=True), or write the "
    "model as a program: torch.jit.save, torch.export.save, or ftn_pytorch export."
)


class PickledRunner(SavedRunner):
    """A whole module written by torch.save, which is read by running code that the file names: only if asked for.

    The classes must be importable; the folder of the file is searched first. Parameters require gradients only in
    training mode.
    """

    backend = "pickle"
    framework = TORCH
    what = "a pickled module"
    has_modes = True

    def _read(self) -> None:
        if self._options.weights_only:
            raise FtnPytorchError("FORMAT", _describe(self.path))
        torch = import_torch(self.path)
        place = device.resolve(self._options.device, TORCH)
        if self._options.compile is not None:
            compiling.prepare(self._options.compile_backend, place)
        model = self._unpickle(torch, place or "cpu")
        if not isinstance(model, torch.nn.Module):
            raise FtnPytorchError("FORMAT", f"{self.path} holds {_kind(model)}, but no torch.nn.Module. {_ADVICE}")
        model.train(self._options.training)
        if not self._options.training:
            model.requires_grad_(False)
        if self._options.compile is not None:
            compiling.compile_module(torch, model, self._options.compile, self._options.compile_backend)
        process.settle_threads()
        self._model, self.device = model, place

    def _unpickle(self, torch: Any, place: str) -> Any:
        try:
            with loading.undone_on_failure(self.path, f"{self.name} (pickled)"):
                return torch.load(self.path, map_location=place, weights_only=False)
        except (ImportError, AttributeError) as failure:
            raise FtnPytorchError(
                "IMPORT",
                f"{self.path} needs classes that cannot be imported: {summary(failure)}. {OF_MAIN}",
            ) from failure
        except Exception as failure:
            raise FtnPytorchError(
                "FORMAT", f"{self.path} cannot be read by torch.load: {message(failure)}"
            ) from failure

    def networks(self) -> dict[str, Any]:
        return {"": self._model}

    def _forward(self) -> Callable:
        return self._model


def _describe(path: str) -> str:
    """What a pickle holds, without running anything of it, and what to do."""
    with open(path, "rb") as stream:
        start = stream.read(4)
    data = formats.Archive(path).read("data.pkl") if start == b"PK\x03\x04" else Path(path).read_bytes()
    found = formats.foreign_names(data)
    if not found:
        return f"{path} cannot be loaded. It was written by torch.save and holds parameters, but no program. {_ADVICE}"
    named = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
    return (
        f"{path} cannot be loaded. It was written by torch.save and holds a pickled object, which is read by running "
        f"code that the file names ({named}). Whoever wrote the file decides what that code does, so it is refused. If "
        f"you trust them and it is a torch.nn.Module, load it with weights_only=.false.; otherwise: {_ADVICE}"
    )


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return f"a dict with {', '.join(map(repr, list(value)[:3]))}{', ...' if len(value) > 3 else ''}"
    return f"an object of type {type(value).__name__}"
