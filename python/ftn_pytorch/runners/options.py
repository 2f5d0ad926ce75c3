# SPDX-License-Identifier: MIT
"""Options of a load as Python has them: checked, and what they refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..errors import FtnPytorchError, did_you_mean

USE_DEVICE = 1
USE_INFERENCE_MODE = 2
_WORDS = {
    "compile": ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
    "record": ("recorded", "compiled"),
}
"""What options may be beside logicals; the first is what true stands for."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of ``fpt_module_load``, see ``option_table``. The core has checked those that it reads itself."""

    layout: str = "reversed"
    mode: str = "checked"
    dtype: str = "keep"
    inputs: str = "share"
    cast: bool = False
    device: str | None = None
    flags: int = 0
    """``USE_DEVICE`` (which ``device`` tells already) and ``USE_INFERENCE_MODE``."""
    weights_only: bool = True
    """Files whose reading would run code of theirs are refused."""
    training: bool = False
    """A saved model predicts in training mode."""
    record: str | None = None
    """The hooks of a script are "recorded", or "compiled" as well, see ``recording``."""
    tolerance: float = 0.0
    """How far numbers of a recording may be from those of the script, relative to the largest."""
    background: bool = False
    """``ftn_pytorch_train`` of a script runs in a process of its own, see ``kit.Background``."""
    communicator: int | None = None
    """Handle of the MPI communicator of Fortran whose ranks train together, see ``communicator``."""
    fallback: str | None = None
    """The file of a model that answers where a server does not."""
    compile: str | None = None
    """Mode of torch.compile, None for not at all."""
    compile_backend: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Options as a program gives them, by name, or as ``asdict`` does; ARGUMENT says what is valid."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in given:
            if name not in names:
                text = f"load has no option {name!r}; valid are {', '.join([*names, 'backend'])}"
                raise FtnPytorchError("ARGUMENT", text + did_you_mean(name, names))
        values = {name: _checked(name, value) for name, value in given.items()}
        chosen = cls(**values)
        if chosen.compile is not None and not chosen.compile_backend:
            chosen = dataclasses.replace(chosen, compile_backend="inductor")
        chosen._refuse_contradictions()
        return chosen

    def _refuse_contradictions(self) -> None:
        text = ""
        if self.compile is None and self.compile_backend:
            text = f"compile_backend is {self.compile_backend!r}, which has an effect together with compile= only"
        elif self.compile not in (None, "default") and self.compile_backend != "inductor":
            text = f'compile={self.compile!r} is a mode of compile_backend="inductor", not of {self.compile_backend!r}'
        elif self.record and self.compile is not None:
            text = "load is given both record= and compile=: what torch.compile has made cannot be recorded"
        elif self.tolerance and not self.record:
            text = f"tolerance is {self.tolerance!r}, which has an effect together with record= only"
        elif self.background and self.communicator is not None:
            text = "load is given both background= and communicator=: a process beside the program is no rank of MPI"
        if text:
            raise FtnPytorchError("ARGUMENT", text)

    def refuse_compile(self, path: str, what: str) -> None:
        """ARGUMENT where torch.compile is asked for and has nothing to do."""
        if self.compile is not None:
            raise FtnPytorchError(
                "ARGUMENT", f"{path} is {what}, which torch.compile cannot work on: leave out compile="
            )

    def refuse_for_saved(self, path: str, may_average: bool = False) -> None:
        """ARGUMENT where a saved model is asked for what scripts alone can do; ``may_average``: it may need ranks."""
        for name in ("record", "background", *(() if may_average else ("communicator",))):
            # the handle of a communicator may be 0
            if getattr(self, name) is not None and getattr(self, name) is not False:
                raise FtnPytorchError(
                    "ARGUMENT", f"{path} is a saved model, and {name}= is for scripts: leave out {name}="
                )

    def refuse_fallback(self, path: str) -> None:
        """ARGUMENT where a file is given another one to fall back to."""
        if self.fallback is not None:
            raise FtnPytorchError("ARGUMENT", f"{path} is a file and no address of a server: leave out fallback=")

    def refuse_training(self, path: str, why: str) -> None:
        """ARGUMENT where training mode is asked for and the mode cannot be chosen."""
        if self.training:
            raise FtnPytorchError("ARGUMENT", f"{path} {why}: leave out training=")


def _checked(name: str, value: Any) -> Any:
    """An option of what Python runs, as ``Options`` has it; what the core has read already stays as it is."""
    from .option_table import OPTIONS  # for who gives an option: see architecture.md on the start of 10,000 ranks

    where = f"load(..., {name}=)"
    row = OPTIONS[name]
    if row.is_read_by_core or (value is None and row.kind not in ("flag", "real")):
        return value
    if row.kind == "flag" or (row.kind == "flag or text" and not isinstance(value, str)):
        if not isinstance(value, int) or value not in (0, 1):
            raise FtnPytorchError("ARGUMENT", f"{where} must be a logical, or a number between 0 and 1")
        return bool(value) if row.kind == "flag" else _WORDS[name][0] if value else None
    if row.kind == "flag or text" and value not in _WORDS[name]:
        listed = f"{where} is {value!r}; valid are {', '.join(_WORDS[name])}"
        raise FtnPytorchError("ARGUMENT", listed + did_you_mean(value, _WORDS[name]))
    if row.kind == "communicator" and not isinstance(value, int):
        raise FtnPytorchError("ARGUMENT", f"{where} must be a single integer")
    if row.kind == "real" and not (isinstance(value, (int, float)) and 0 <= value < 1):
        raise FtnPytorchError("ARGUMENT", f"{where} is {value!r}; it must be a number from 0 to less than 1")
    if row.kind == "text" and not isinstance(value, str):
        raise FtnPytorchError("ARGUMENT", f"{where} must be a string")
    if name == "fallback" and value == "":
        raise FtnPytorchError("ARGUMENT", f"{where} is empty; name the file of a saved model")
    return value
