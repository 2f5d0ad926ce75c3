# SPDX-License-Identifier: MIT
"""A saved recording in Python: its functions, its state, and checkpoints, without the script that it was made of."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from ..errors import FtnPytorchError, did_you_mean
from ..recording import kernel_settings
from ..recording.arguments import leaves
from ..recording.saved_tape import Misfit, SavedTape
from ..script.conventions import FORWARD, TRAIN
from . import archive, description, file, recording_file, resumption
from .base import Checkpoint
from .content import NOT_UNDERSTOOD, not_understood


class _Chosen(NamedTuple):
    """A recording that a call runs, with the arguments in its order."""

    tape: SavedTape
    given: list[Any]
    batch: int
    numbers: list[float]


class SavedRecording(Checkpoint):
    """The functions and the state of a file that ``save_recording`` wrote.

    Operators are called one by one from Python. A program in Fortran runs the same file without Python, see
    ``torch_module``. Functions change the state of this object, and torch's generator of random numbers, which the file
    sets when it is read.

    FILE if it cannot be read, CORRUPT if it is damaged, FORMAT if it is another file, or was written by a torch whose
    operators are others.
    """

    def __init__(self, path: str, device: Any = None) -> None:
        super().__init__()
        self._file = file.resolve(path)
        self._device = torch.device("cpu" if device is None else device)
        self._alone = threading.RLock()
        content = recording_file.read(self._file, self._device)
        if "recording" not in content.parts:
            raise FtnPytorchError(
                "FORMAT", f"{path} is a checkpoint, which holds no functions: restore a script from it"
            )
        try:
            self._load(content)
        except NOT_UNDERSTOOD as failure:
            raise not_understood(self._file, failure) from failure

    def _load(self, content: recording_file.Content) -> None:
        recording = content.parts["recording"]
        self._tapes, self._settings = recording_file.functions(recording, self._file, self._device)
        self.script: str = recording["script"]
        self.torch: str = recording["torch"]
        self._recording = recording
        memory = {
            each.untyped_storage().data_ptr()
            for tapes in self._tapes.values()
            for tape in tapes
            for each in tape.tensors()
        }
        arrays = content.parts["arrays"]
        self._used = {name: each for name, each in arrays.items() if each.untyped_storage().data_ptr() in memory}
        self._take(content)

    def _take(self, content: recording_file.Content) -> None:
        parts = content.parts
        self.arrays: dict[str, Any] = parts["arrays"]
        self._pieces = resumption.opened(parts["state"], parts["holes"])
        self.numbers: dict[str, float] = dict(parts["numbers"])
        torch.set_rng_state(parts["generator"].cpu())

    def functions(self) -> list[str]:
        """Names of the functions that the file holds."""
        return list(self._tapes)

    def parameters(self) -> dict[str, Any]:
        """The parameters by name, "net.0.weight": the tensors that functions compute with. None requires gradients.

        HOOK for a file of an earlier version, which does not tell them.
        """
        if "parameters" not in self._recording:
            raise FtnPytorchError(
                "HOOK",
                f"{self._file} was written by an earlier version and does not tell its parameters: write it again",
            )
        return {name: self.arrays[place] for name, place in self._recording["parameters"]}

    def described(self, name: str) -> list[str]:
        """What each recording of a function takes: "x float32 (B, 16), target float32 (B, 4)"."""
        return [each.described() for each in self._tapes[name]]

    def operators(self, name: str) -> list[list[str]]:
        """The operators that each recording of a function calls, in their order."""
        return [each.names() for each in self._tapes[name]]

    def forward(self, *args: Any, **named: Any) -> Any:
        """``ftn_pytorch_forward`` of the script."""
        return self.call(FORWARD, *args, **named)

    def train(self, *args: Any, **named: Any) -> Any:
        """``ftn_pytorch_train`` of the script."""
        return self.call(TRAIN, *args, **named)

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        """The result of a function, containers with names as dicts.

        HOOK if there is no such function, or if a step of an optimizer would go another way than it was recorded,
        SIGNATURE, SHAPE, DTYPE, ARGUMENT for arguments that no recording of it takes.
        """
        with self._alone, kernel_settings.held(self._settings):
            chosen = self._chosen(name, args, named)
            return chosen.tape.run(chosen.given, chosen.batch, chosen.numbers, self.arrays)

    def changes_arguments(self, name: str) -> bool:
        """Whether a recording of a function changes one of its arguments in place."""
        return any(tape.written_inputs for tape in self._tapes.get(name, ()))

    def changed_arguments(self, name: str, args: tuple, named: Mapping[str, Any]) -> list[Any]:
        """The arguments that a call would change in place. Raises what the call would raise."""
        with self._alone:
            chosen = self._chosen(name, args, named)
        return [chosen.given[place] for place in chosen.tape.written_inputs]

    def _chosen(self, name: str, args: tuple, named: Mapping[str, Any]) -> _Chosen:
        """The recording that a call runs; raises as ``call`` says."""
        tapes = self._tapes.get(name)
        if tapes is None:
            there = ", ".join(self._tapes)
            raise FtnPytorchError(
                "HOOK", f"{self._file} has no function {name}; it has {there}{did_you_mean(name, self._tapes)}"
            )
        fitting, misfits, other_way = [], [], ""
        for tape in tapes:
            given = _in_order(tape, args, named)
            batch = None if given is None else tape.batch_of(given)
            if isinstance(batch, Misfit):
                misfits.append(batch)
            elif given is not None and batch is not None:
                fitting.append((tape, given, batch))
        # one for other strides is the next best
        fitting.sort(key=lambda each: each[0].distance_of(each[1], each[2]))
        for tape, given, batch in fitting:
            numbers = tape.numbers(self.numbers)
            if numbers is None:
                other_way = "the step of an optimizer goes another way than it was recorded"
            elif not tape.holds_for(self.arrays):
                other_way = "gradients are not set as they were when it was recorded"
            else:
                return _Chosen(tape, given, batch, numbers)
        if other_way:
            raise FtnPytorchError("HOOK", f"{name} of {self._file}: {other_way}")
        raise self._refusal(name, misfits, args, named)

    def _refusal(self, name: str, misfits: list[Misfit], args: tuple, named: Mapping[str, Any]) -> FtnPytorchError:
        # the one that was meant is that of which most fits
        status = max(misfits).status if misfits else "SIGNATURE"
        shown = ", ".join(_shown(each) for each in leaves((args, dict(named)))) or "nothing"
        there = "; ".join(self.described(name))
        advice = "; load(..., dtype=...) converts real arrays on their way in" if status == "DTYPE" else ""
        return FtnPytorchError(status, f"{name} of {self._file} is given {shown}; its recordings take: {there}{advice}")

    def get_number(self, name: str) -> float:
        """A number of an optimizer, by its name ("opt.0.lr") or an end of that which no other has ("lr")."""
        return self.numbers[self._number(name)]

    def set_number(self, name: str, value: float) -> None:
        """Change a number of an optimizer; ARGUMENT for a name that does not tell which, zero and what is no number.

        A recording holds for numbers other than zero, since a step with zero may call other operators.
        """
        found = self._number(name)
        if value == 0 or not math.isfinite(value):
            raise FtnPytorchError(
                "ARGUMENT", f"{found} of {self._file} cannot become {value}: it was recorded not zero"
            )
        self.numbers[found] = float(value)

    def _number(self, name: str) -> str:
        if name in self.numbers:
            return name
        fitting = [each for each in self.numbers if each.endswith(f".{name}")]
        if len(fitting) == 1:
            return fitting[0]
        listed = f"{name!r} may be {', '.join(fitting)}" if fitting else f"there is no {name!r}"
        there = "" if fitting else f"; there are {', '.join(self.numbers) or 'none'}"
        raise FtnPytorchError("ARGUMENT", f"numbers of optimizers in {self._file}: {listed}{there}")

    def save_recording(self, path: str) -> str:
        """Write a file like the one that was loaded, with the present state."""
        target = file.resolve(path)
        with file.locked(target):
            self._write_file(target, None, file.RECORDING)
        return target

    def _write(self, path: str, step: int | None) -> None:
        self._write_file(path, step, file.CHECKPOINT)

    def _write_file(self, path: str, step: int | None, kind: int) -> None:
        generator = torch.get_rng_state()
        text, holes = resumption.filled(self._pieces, resumption.values_of(self.numbers, generator))
        others: dict[str, Any] = {"numbers": self.numbers, "generator": generator, "holes": holes}
        if kind == file.RECORDING:
            others["recording"] = self._recording
        here = description.describe(step, archive.TORCH)
        values: dict[resumption.Hole, str] = {
            (name,): json.dumps(here[name]) for name in ("step", "host", "rank", "ranks")
        }
        values["written",] = json.dumps(time.strftime("%Y-%m-%dT%H:%M:%S%z"))
        about = json.loads(resumption.filled(self._recording["description"], values)[0])
        file.write(
            path, about, lambda stream: archive.write(stream, text, self.arrays, others), kind, recording_file.check
        )

    def _read(self, path: str) -> recording_file.Content:
        return recording_file.read(path, self._device)

    def _apply(self, content: Any, path: str, first: Any = None, only: frozenset[str] | None = None) -> int | None:
        parts = content.parts
        try:
            misfits = list(_misfits(self._used, parts["arrays"]))
            used = {name for tapes in self._tapes.values() for tape in tapes for name in tape.settings()}
            misfits += [f"the file has no number {name}" for name in used if name not in parts["numbers"]]
            if misfits:
                raise FtnPytorchError(
                    "FORMAT", f"{path} does not fit the state of {self._file}: {'; '.join(misfits[:5])}"
                )
            resumption.opened(parts["state"], parts["holes"])
            torch.set_rng_state(parts["generator"].cpu())
        except NOT_UNDERSTOOD as failure:
            raise not_understood(path, failure) from failure
        with torch.no_grad():
            ours = {name: array.copy_(parts["arrays"][name]) for name, array in self._used.items()}
        self._take(recording_file.Content(content.about, {**parts, "arrays": {**parts["arrays"], **ours}}))
        step: int | None = content.about.get("step")
        return step


def load_recording(path: str, device: Any = None) -> SavedRecording:
    """What ``save_recording`` wrote: see ``SavedRecording``. device: of torch, by default the host."""
    return SavedRecording(path, device)


def _misfits(here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[str]:
    """Why the arrays that tapes use cannot be those of a file; all others are taken over."""
    for name, array in here.items():
        if name not in there:
            yield f"the file has no {name}"
        elif (array.shape, array.dtype) != (there[name].shape, there[name].dtype):
            yield f"{name} is {_shown(there[name])} in the file and {_shown(array)} here"


def _in_order(tape: SavedTape, args: tuple, named: Mapping[str, Any]) -> list[Any] | None:
    """Arguments in the order of a recording; None if it takes others."""
    given = list(leaves(args))
    names = [each[0] for each in tape.inputs]
    if len(given) + len(named) != len(names) or any(name not in names[len(given) :] for name in named):
        return None
    return given + [named[name] for name in names[len(given) :]] if named else given


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return repr(value)
