# SPDX-License-Identifier: MIT
"""A saved recording in Python: its functions, its state, and checkpoints, without the script that it was made of."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from ..checkpoint import file
from ..checkpoint.base import Checkpoint, warn_of_other_rank
from ..errors import FtnPytorchError
from ..ranks import own_rank, sums
from ..recording.arguments import leaves
from ..script.conventions import FORWARD, TRAIN
from ..system import extension, fair_lock, installation, trial


class _Read(NamedTuple):
    """A checkpoint that was read, and is not applied yet."""

    about: dict[str, Any]
    content: Any


class SavedRecording(Checkpoint):
    """The functions and the state of a file that ``save_recording`` wrote.

    It is what a program in Fortran runs without Python, see ``torch_module``. Functions change the state of this
    object, and torch's generator of random numbers, which the file sets when it is read.

    FILE if it cannot be read, CORRUPT if it is damaged, FORMAT if it is another file, or was written by a torch whose
    operators are others. IMPORT where the library has no direct path for this torch.

    Checkpoints of a script that has one among its names keep its state.
    """

    _is_declaration = False

    def __init__(self, path: str, device: Any = None) -> None:
        super().__init__()
        self.path = file.resolve(path)
        place = torch.device("cpu" if device is None else device)
        if place.type != "cpu" and place.index is None:
            place = torch.empty(0, device=place).device
        self._held = opened(self.path, "" if place.type == "cpu" else str(place))

    @property
    def script(self) -> str:
        """The file name of the script."""
        return self._held.told("script")

    @property
    def torch(self) -> str:
        """The version that recorded it."""
        return self._held.told("torch")

    @property
    def arrays(self) -> dict[str, Any]:
        """The tensors of the state by name, those that functions change."""
        return self._held.arrays()

    @property
    def numbers(self) -> dict[str, float]:
        """Those of optimizers by name."""
        return dict(self._held.numbers())

    def functions(self) -> list[str]:
        """Names of the functions that the file holds."""
        return list(dict.fromkeys(name for name, *_ in self._held.functions()))

    def parameters(self) -> dict[str, Any]:
        """The parameters by name, "net.0.weight": the tensors that functions compute with. None requires gradients.

        HOOK for a file that has none, or of an earlier version, which does not tell them.
        """
        arrays = self.arrays
        found = {name: arrays[place] for name, place in self._held.parameters()}
        if not found:
            raise FtnPytorchError(
                "HOOK", f"{self.path} tells no parameters: it has none, or an earlier version wrote it"
            )
        return found

    def described(self, name: str) -> list[str]:
        """What each recording of a function takes: "x float32 (B, 16), target float32 (B, 4)"."""
        return [arguments for each, arguments, *_ in self._held.functions() if each == name]

    def operators(self, name: str) -> list[list[str]]:
        """The operators that each recording of a function calls, in their order."""
        return [operators for each, _, operators, _ in self._held.functions() if each == name]

    def forward(self, *args: Any, **named: Any) -> Any:
        """``ftn_pytorch_forward`` of the script."""
        return self.call(FORWARD, *args, **named)

    def train(self, *args: Any, **named: Any) -> Any:
        """``ftn_pytorch_train`` of the script."""
        return self.call(TRAIN, *args, **named)

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        """The result of a function, containers with names as dicts.

        HOOK if there is no such function, or if a step of an optimizer would go another way than it was recorded,
        SIGNATURE, SHAPE, DTYPE, ARGUMENT for arguments that no recording of it takes, PYTHON for what an operator
        raises.
        """
        return self._held.call(name, args, named)

    def changes_arguments(self, name: str) -> bool:
        """Whether a recording of a function changes one of its arguments in place."""
        return any(each == name and changes for each, _, _, changes in self._held.functions())

    def changed_arguments(self, name: str, args: tuple, named: dict[str, Any]) -> list[Any]:
        """The arguments that a call would change in place. Raises what the call would raise."""
        given = [*leaves(args), *named.values()]
        return [given[place] for place in self._held.written(name, args, named)]

    def get_number(self, name: str) -> float:
        """A number of an optimizer, by its name ("opt.0.lr") or an end of that which no other has ("lr")."""
        return self._held.number(name)

    def set_number(self, name: str, value: float) -> None:
        """Change a number of an optimizer; ARGUMENT for a name that does not tell which, zero and what is no number.

        A recording holds for numbers other than zero, since a step with zero may call other operators.
        """
        self._held.set_number(name, value)

    def save_recording(self, path: str) -> str:
        """Write a file like the one that was loaded, with the present state."""
        target = file.resolve(path)
        self._held.write(target, True, None, *own_rank.rank_and_size())
        return target

    def save(self, path: str | os.PathLike[str], *, step: int | None = None) -> str:
        target = file.resolve(path)
        if not trial.is_on():
            with fair_lock.lock():
                self._write_alone(target, step)
        return target

    def state_dict(self) -> dict[str, Any]:
        """A checkpoint of it, as bytes."""
        with tempfile.TemporaryDirectory(prefix="ftn_pytorch_") as place:
            path = os.path.join(place, "state")
            self._write_alone(path, None)
            with open(path, "rb") as stream:
                return {"file": torch.frombuffer(bytearray(stream.read()), dtype=torch.uint8)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there. FORMAT, and nothing is changed, for that of another recording."""
        held = state["file"].contiguous()
        with tempfile.NamedTemporaryFile(prefix="ftn_pytorch_") as stream:
            stream.write(ctypes.string_at(held.data_ptr(), held.numel()))
            stream.flush()
            self._held.go_on_from(self._held.read(stream.name), f"the state of {self.path}")

    def _write_alone(self, path: str, step: int | None) -> None:
        self._held.write(path, False, step, *own_rank.rank_and_size())

    def _read(self, path: str) -> _Read:
        return _Read(file.description(path) or {}, self._held.read(path))

    def _apply(self, content: Any, path: str, only: frozenset[str] | None = None) -> int | None:
        self._held.go_on_from(content.content, path)
        warn_of_other_rank(content.about, path)
        step: int | None = content.about.get("step")
        return step


def opened(path: str, device: str = "", starts_generator: bool = True) -> Any:
    """The reader's own object for a file; see ``SavedRecording`` for what is raised.

    starts_generator: torch's generator goes on from its state in the file.
    """
    module = extension.module()
    if module is None:
        raise FtnPytorchError(
            "IMPORT", f"{path} is a saved recording, which cannot be run here: {extension.obstacle()}"
        )
    if not (plugin := extension.plugin()):
        missing = f"there is no {extension.PLUGIN} beside {module.__file__}: {installation.direct_cure()}"
        raise FtnPytorchError("IMPORT", f"{path} is a saved recording, which cannot be run here: {missing}")
    return module.SavedFile(plugin, path, device, sums.average_here, starts_generator)


def load_recording(path: str, device: Any = None) -> SavedRecording:
    """What ``save_recording`` wrote: see ``SavedRecording``. device: of torch, by default the host."""
    return SavedRecording(path, device)
