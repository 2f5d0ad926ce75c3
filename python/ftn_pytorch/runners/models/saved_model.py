# SPDX-License-Identifier: MIT
"""What the runners of finished models share: one function, ``ftn_pytorch_forward``, and nothing to train or save."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable
from typing import Any

from ...errors import FtnPytorchError
from ...script import loading, parameters
from ...script.conventions import FORWARD, Convention
from ..base import Runner, refuse_config
from ..options import Options
from . import formats


class SavedRunner(Runner):
    """A model that is run and not changed. Inputs are separate arguments, by position or by name."""

    what: str
    """``backend``, which is what ``formats.identify`` says of the file, in words, with its article."""
    has_modes = False
    """The model can be in training or evaluation mode."""

    def __init__(self, path: str, options: Options, config: dict[str, Any]) -> None:
        super().__init__(path, options)
        refuse_config(path, self.what, config)
        if not self.has_modes:
            options.refuse_training(path, f"is {self.what}, whose mode was settled when it was written")
        self._read()

    @abc.abstractmethod
    def _read(self) -> None:
        """Read the file; on failure everything stays as it was."""

    @abc.abstractmethod
    def _forward(self) -> Callable:
        """The function to call, on the device."""

    def reload(self) -> None:
        found = formats.identify(loading.find(self.path))
        if found != self.backend:
            raise FtnPytorchError(
                "FORMAT", f"{self.path} was {self.what} and is of the kind {found!r} now: load it again"
            )
        self._read()

    def _kept(self, wanted: str) -> Any:
        raise FtnPytorchError(
            "HOOK", f"{self.path} is {self.what}, which no call changes: copy its file, or load another one"
        )

    def find(self, name: str) -> Callable | None:
        return self._forward() if name == FORWARD else parameters.own_function(self, name)

    def functions(self) -> list[str]:
        return [FORWARD]

    def signature(self, name: str) -> inspect.Signature | None:
        """None: these models check their inputs themselves, in every call."""
        self.require(name)
        return None

    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        return self._for_tensors(self.require(name), name == FORWARD, flags)
