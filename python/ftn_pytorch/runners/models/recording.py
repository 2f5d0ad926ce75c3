# SPDX-License-Identifier: MIT
"""The runner for saved recordings where Python runs them: the operators one by one, with the same numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...errors import FtnPytorchError
from ...ranks import own_rank
from ...script import loading
from ...script.conventions import FORWARD, RESTORE, SAVE, TRAIN, Convention
from ...script.framework import TORCH, import_torch
from ...script.parameters import PARAMETERS
from ...tensors import device
from ..base import Postponed, Runner, refuse_config, refuse_gradients
from ..options import Options
from . import formats

SET, GET = "ftn_pytorch_set", "ftn_pytorch_get"


class RecordingRunner(Runner):
    """A file that ``save_recording`` wrote. Predictions and training are those of the script, in the modes that it had.

    torch follows nothing of it: a result has no graph.
    """

    backend = "recording"
    framework = TORCH
    is_differentiable = False

    def __init__(self, path: str, options: Options, config: dict[str, Any]) -> None:
        super().__init__(path, options)
        refuse_config(path, "a saved recording", config)
        options.refuse_compile(path, "a saved recording")
        options.refuse_training(path, "is a saved recording, whose modes were settled when it was written")
        import_torch(path)
        self._read()

    def _read(self) -> None:
        from ...saved.saved_recording import SavedRecording

        place = device.resolve(self._options.device, TORCH)
        self._recording, self.device = SavedRecording(self.path, place), place

    def reload(self) -> None:
        if formats.identify(loading.find(self.path)) != formats.RECORDING:
            raise FtnPytorchError(
                "FORMAT", f"{self.path} was a saved recording and is something else now: load it again"
            )
        self._read()

    def save(self, file: str) -> None:
        self._recording.save_recording(own_rank.with_rank(file))

    def _kept(self, wanted: str) -> Any:
        return self._recording

    def find(self, name: str) -> Callable | None:
        own: dict[str, Callable] = {
            SET: self._set,
            GET: self._get,
            SAVE: self.save,
            RESTORE: self.restore,
            PARAMETERS: self._recording.parameters,
        }
        if name in own:
            return own[name]
        return functools.partial(self._recording.call, name) if name in self._recording.functions() else None

    def _set(self, name: Any = None, value: Any = None, *others: Any) -> None:
        if others or not isinstance(name, str) or not isinstance(value, (int, float)):
            raise FtnPytorchError("SIGNATURE", f"{SET} takes a name and a number")
        self._recording.set_number(name, value)

    def _get(self, name: Any = None, *others: Any) -> float:
        if others or not isinstance(name, str):
            raise FtnPytorchError("SIGNATURE", f"{GET} takes the name of a number of an optimizer")
        return self._recording.get_number(name)

    def functions(self) -> list[str]:
        return [*self._recording.functions(), SET, GET]

    def signature(self, name: str) -> None:
        """None: a recording checks its arguments itself, in every call."""
        self.require(name)

    def first_call(self, name: str, args: Any, kwargs: Any) -> None:
        """Nothing: see ``signature``."""

    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        from torch import autograd

        function = self.require(name)
        if name in (SET, GET, PARAMETERS):
            return function, Convention(one_list=False, has_out=False)
        on_device, convention = self._for_tensors(function, name not in (FORWARD, TRAIN), 0)
        changes = self._recording.changes_arguments(name)

        def call(*args: Any, **named: Any) -> Any:
            refuse_gradients((*args, *named.values()), f"{name} of {self.path}", "a saved recording")
            if not changes:
                return on_device(*args, **named)
            # What a recording writes counts nothing. Counted before it runs, a change that is refused is never made.
            written = self._recording.changed_arguments(name, args, named)
            autograd.graph.increment_version([each for each in written if not each.is_inference()])
            return Postponed(functools.partial(on_device, *args, **named)) if written else on_device(*args, **named)

        return call, convention
