# SPDX-License-Identifier: MIT
"""The interface of a runner."""

from __future__ import annotations

import abc
import contextlib
import functools
import inspect
import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import FtnPytorchError, did_you_mean
from ..script import conventions, parameters
from ..script.conventions import RESTORE, SAVE, TRAIN, Convention
from .options import USE_INFERENCE_MODE, Options

if TYPE_CHECKING:
    from ..ranks.communicator import Communicator


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

    names: dict[str, Any] | None = None
    """The names of a script: a function that gets another value there is bound anew before its next call."""

    is_differentiable = True
    """torch computes, so it can follow what depends on what."""

    def __init__(self, path: str, options: Options) -> None:
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.layout = options.layout
        self.mode = options.mode
        self.dtype = options.dtype
        self.inputs = options.inputs
        self.cast = options.cast
        self._options = options
        self.communicator: Communicator | None = None
        if options.communicator is not None:
            from ..ranks import communicator

            self.communicator = communicator.opened(options.communicator, self)
        self._attached: list[tuple[str, weakref.ref]] = []

    def at_work(self) -> contextlib.AbstractContextManager:
        """While the file is loaded or state is written: ranks are those of the communicator, if there is one."""
        if self.communicator is None:
            return contextlib.nullcontext()
        from ..ranks import communicator

        return communicator.of_module(self.communicator)

    def networks(self) -> dict[str, Any]:
        """Modules of torch, and parameters outside of any, by name; those of a saved model have an empty name."""
        return {}

    def value(self, name: str) -> Any:
        """What a name of a script stands for, also "background.published"; None where there is no such name."""
        return None

    def attach(self, kind: str, made: Any) -> None:
        """Keep the state of an object that Fortran made for this model in its checkpoints, as long as both live."""
        self._attached = [known for known in self._attached if known[1]() is not None]
        self._attached.append((kind, weakref.ref(made)))

    def attached(self) -> dict[str, Any]:
        """What was attached and lives, "torch_optimizer.1": numbered in the order in which it was made."""
        found: dict[str, Any] = {}
        for kind, reference in self._attached:
            made = reference()
            if made is not None:
                number = sum(name.startswith(f"{kind}.") for name in found) + 1
                found[f"{kind}.{number}"] = made.state()
        return found

    @abc.abstractmethod
    def reload(self) -> None:
        """Read the file again; on failure everything stays as it was."""

    def save(self, file: str) -> None:
        """Write the model to a file."""
        self._kept(SAVE).save(file)

    def checkpoint(self, folder: str, keep: int, step: int | None) -> None:
        """Write the next checkpoint of a folder; see ``checkpoint.Checkpoint.write``."""
        with self.at_work():
            self._kept(SAVE).write(folder, keep=keep, step=step)

    def restore(self, file: str, fallback: bool = False, step: int | None = None) -> int | None:
        """Read what ``save`` or ``checkpoint`` wrote, from a file or a folder; the step of it if it has one."""
        return self._kept(RESTORE).restore(file, step=step, fallback=fallback)

    @abc.abstractmethod
    def _kept(self, wanted: str) -> Any:
        """The checkpoint of what calls change, to ``SAVE`` or to ``RESTORE``; HOOK where they change nothing."""

    @abc.abstractmethod
    def find(self, name: str) -> Callable | None:
        """The function of that name as its author wrote it, None if there is none."""

    @abc.abstractmethod
    def functions(self) -> list[str]:
        """Names of the functions there are, for messages."""

    @abc.abstractmethod
    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        """What the library calls for a function, and how; HOOK if there is no such function."""

    def _for_tensors(self, function: Callable, predicts: bool, flags: int) -> tuple[Callable, Convention]:
        """What ``bind`` returns for a function of a saved model: on the device, and if it predicts as the flags say."""
        if predicts and (flags | self._options.flags) & USE_INFERENCE_MODE and not self._options.training:
            function = _under_inference_mode(function)
        if self.device is not None:
            from ..tensors import device

            function = device.on_device(function, self.device)
        return function, Convention(one_list=False, has_out=False)

    def for_derivatives(self, function: Callable) -> Callable:
        """The form of a function that torch can follow."""
        return function

    def first_call(self, name: str, args: tuple, kwargs: Mapping[str, Any]) -> None:
        """Check the first call of a function: SIGNATURE if the arguments do not fit it."""
        if name == TRAIN:
            from ..ranks import own_rank

            with self.at_work():
                own_rank.warn_of_lone_ranks(getattr(self.find(name), "__globals__", {}))
        conventions.check_call(name, self.signature(name), args, kwargs)

    def signature(self, name: str) -> inspect.Signature | None:
        """Signature of a function, None if nothing is known of it; HOOK if there is no such function."""
        return conventions.signature_of(self.require(name))

    def require(self, name: str) -> Callable:
        """``find``, or HOOK with the functions there are. Also derivatives of functions, see ``differentiation``."""
        if ":" in name:
            from ..tensors import derivatives

            wanted = derivatives.parse(name)
            if wanted is not None and not self.is_differentiable:
                raise FtnPytorchError(
                    "HOOK", f"{self.path} cannot be differentiated: it holds no operations that torch could follow"
                )
            if wanted is not None:
                followed = self.for_derivatives(self.require(wanted[2]))
                check = functools.partial(conventions.check_call, wanted[2], self.signature(wanted[2]))
                return derivatives.derivative(wanted, followed, self.layout == "reversed", check)
        function = self.find(name)
        if function is not None:
            return function
        if parameters.is_own(name):
            raise parameters.refusal(self.path)
        there = self.functions()
        listed = f"it has {', '.join(there)}" if there else "it has none"
        raise FtnPytorchError("HOOK", f"{self.path} has no function {name}; {listed}{did_you_mean(name, there)}")


class Postponed:
    """A call that the core makes when it has found no input changed that must not be."""

    def __init__(self, step: Callable[[], Any]) -> None:
        self.ftn_pytorch_step = step


def refuse_gradients(values: Iterable[Any], where: str, what: str) -> None:
    """ARGUMENT for an input that requires gradients, where ``what`` computes, which torch cannot follow."""
    if not any(getattr(value, "requires_grad", False) for value in values):
        return
    from torch import is_grad_enabled

    if is_grad_enabled():
        raise FtnPytorchError(
            "ARGUMENT",
            f"an input of {where} requires gradients, and {what} records none: load the model as TorchScript with "
            'backend="python", or switch gradients off with scope%no_grad()',
        )


def _under_inference_mode(function: Callable) -> Callable:
    """Except where an input requires gradients: a result of inference mode has none."""
    from torch import inference_mode

    def predict(*args: Any, **named: Any) -> Any:
        if any(getattr(value, "requires_grad", False) for value in (*args, *named.values())):
            return function(*args, **named)
        with inference_mode():
            return function(*args, **named)

    return predict
