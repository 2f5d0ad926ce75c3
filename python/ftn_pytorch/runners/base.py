# SPDX-License-Identifier: MIT
"""The interface of a runner, and the options of a load."""

from __future__ import annotations

import abc
import difflib
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import conventions, process
from ..conventions import TRAIN, Convention
from ..errors import FtnPytorchError

USE_DEVICE = 1
USE_INFERENCE_MODE = 2

MODE_VARIABLE = "FTN_PYTORCH_MODE"

# The first choice is the default.
_CHOICES: dict[str, tuple[str, ...]] = {
    "layout": ("reversed", "same"),
    "mode": ("checked", "safe"),
    "dtype": ("keep", "float32", "float64"),
    "inputs": ("share", "copy"),
    "backend": ("auto", "python", "direct"),
}
_COMPILE_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_NAMES = (*_CHOICES, "device", "cast", "flags", "compile", "compile_backend", "weights_only")


@dataclass(frozen=True)
class Options:
    """Options of ``fpt_module_load``, checked and with defaults filled in."""

    layout: str
    mode: str
    dtype: str
    inputs: str
    cast: bool
    device: str | None
    flags: int
    weights_only: bool
    """Files whose reading would run code of theirs are refused."""
    compile: str | None
    """Mode of torch.compile, None for not at all."""
    compile_backend: str

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Options:
        """Check options by name and value; ARGUMENT lists what is valid."""
        for name in options:
            if name not in _NAMES:
                raise FtnPytorchError("ARGUMENT", f"load has no option {name!r}{_suggest(name, _NAMES)}")
        chosen = {name: _choice(name, options.get(name), f"load(..., {name}=)") for name in _CHOICES}
        if options.get("mode") is None and os.environ.get(MODE_VARIABLE):
            chosen["mode"] = _choice("mode", os.environ[MODE_VARIABLE], f"the environment variable {MODE_VARIABLE}")
        if chosen.pop("backend") == "direct":
            raise FtnPytorchError(
                "ARGUMENT", 'backend="direct": the Python side was asked, which has no direct path; use "auto" or "python"'
            )
        flags = _integer("flags", options.get("flags"), USE_DEVICE | USE_INFERENCE_MODE)
        device = options.get("device")
        if device is not None and not isinstance(device, str):
            raise FtnPytorchError("ARGUMENT", f'device is {device!r}, it must be a text such as "cpu" or "cuda:0"')
        if device is None and flags & USE_DEVICE:
            device = "cuda"
        cast = bool(_integer("cast", options.get("cast"), 1))
        weights_only = bool(_integer("weights_only", options.get("weights_only", True), 1))
        compile, compile_backend = _compile(options.get("compile"), options.get("compile_backend"))
        return cls(
            **chosen,
            cast=cast,
            device=device,
            flags=flags,
            weights_only=weights_only,
            compile=compile,
            compile_backend=compile_backend,
        )

    def refuse_compile(self, path: str, what: str) -> None:
        """ARGUMENT where torch.compile is asked for and has nothing to do."""
        if self.compile is not None:
            raise FtnPytorchError(
                "ARGUMENT", f"{path} is {what}, which torch.compile cannot work on: leave compile= away"
            )


def _compile(wish: Any, backend: Any) -> tuple[str | None, str]:
    if backend is not None and not isinstance(backend, str):
        raise FtnPytorchError("ARGUMENT", f'compile_backend is {backend!r}, it must be a text such as "inductor"')
    if wish is None or wish is False:
        if backend is not None:
            raise FtnPytorchError(
                "ARGUMENT", f"compile_backend is {backend!r}, which has an effect together with compile= only"
            )
        return None, ""
    mode = _COMPILE_MODES[0] if wish is True else wish
    if mode not in _COMPILE_MODES:
        raise FtnPytorchError(
            "ARGUMENT",
            f"load(..., compile=) is {wish!r}; it must be a logical or a mode{_suggest(wish, _COMPILE_MODES)}",
        )
    backend = backend or "inductor"
    if backend != "inductor" and mode != _COMPILE_MODES[0]:
        raise FtnPytorchError(
            "ARGUMENT", f'compile={mode!r} is a mode of compile_backend="inductor", not of {backend!r}'
        )
    return mode, backend


def _choice(name: str, value: Any, where: str) -> str:
    valid = _CHOICES[name]
    if value is None:
        return valid[0]
    if value not in valid:
        raise FtnPytorchError("ARGUMENT", f"{where} is {value!r}{_suggest(value, valid)}")
    return value


def _integer(name: str, value: Any, largest: int) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or not 0 <= value <= largest:
        raise FtnPytorchError("ARGUMENT", f"{name} is {value!r}, it must be between 0 and {largest}")
    return int(value)


def _suggest(found: Any, valid: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(found), list(valid), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"; valid are {', '.join(valid)}.{hint}"


def refuse_config(path: str, what: str, config: Mapping[str, Any]) -> None:
    """ARGUMENT where a saved model is given a configuration."""
    if config:
        raise FtnPytorchError("ARGUMENT", f"{path} is {what}, it takes no config ({', '.join(config)})")


class Runner(abc.ABC):
    """A loaded file, as the library uses it through ``_embed``.

    The attributes are settled when the constructor or ``reload`` returns: ``name`` (stem of the file), ``backend``,
    ``framework`` (what arrays become), ``device`` (None for the host) and those of ``Options``.
    """

    backend: str
    framework: str
    device: str | None

    def __init__(self, path: str, options: Options) -> None:
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.layout = options.layout
        self.mode = options.mode
        self.dtype = options.dtype
        self.inputs = options.inputs
        self.cast = options.cast
        self.flags = options.flags
        self.wanted_device = options.device

    @abc.abstractmethod
    def reload(self) -> None:
        """Read the file again; on failure everything stays as it was."""

    @abc.abstractmethod
    def save(self, file: str) -> None:
        """Write the model to a file."""

    @abc.abstractmethod
    def checkpoint(self, folder: str, keep: int, step: int | None) -> None:
        """Write the next checkpoint of a folder; see ``checkpoint.Checkpoint.write``."""

    @abc.abstractmethod
    def restore(self, file: str, fallback: bool = False, step: int | None = None) -> int | None:
        """Read what ``save`` or ``checkpoint`` wrote, from a file or a folder; the step of it if it has one."""

    @abc.abstractmethod
    def find(self, name: str) -> Callable | None:
        """The function of that name as its author wrote it, None if there is none."""

    @abc.abstractmethod
    def functions(self) -> list[str]:
        """Names of the functions there are, for messages."""

    @abc.abstractmethod
    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        """What the library calls for a function, and how; HOOK if there is no such function."""

    def first_call(self, name: str, args: tuple, kwargs: Mapping[str, Any]) -> None:
        """Check the first call of a function: SIGNATURE if the arguments do not fit it."""
        if name == TRAIN:
            process.warn_of_lone_ranks()
        conventions.check_call(name, self.signature(name), args, kwargs)

    def signature(self, name: str) -> inspect.Signature | None:
        """Signature of a function, None if nothing is known of it; HOOK if there is no such function."""
        return conventions.signature_of(self.require(name))

    def require(self, name: str) -> Callable:
        """``find``, or HOOK with the functions there are."""
        function = self.find(name)
        if function is not None:
            return function
        there = self.functions()
        close = difflib.get_close_matches(name, there, n=1)
        listed = f"it has {', '.join(there)}" if there else "it has none"
        hint = f". Did you mean {close[0]!r}?" if close else ""
        raise FtnPytorchError("HOOK", f"{self.path} has no function {name}; {listed}{hint}")
