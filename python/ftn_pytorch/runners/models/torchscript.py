# SPDX-License-Identifier: MIT
"""The runner for TorchScript models, through ``torch.jit`` of the interpreter's torch."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...errors import FtnPytorchError, summary, trace
from ...script import conventions, loading, parameters
from ...script.conventions import FORWARD, RESTORE, SAVE, TRAIN, Convention
from ...script.framework import TORCH, import_torch
from ...system import fair_lock, files, private_names, process
from ...tensors import device
from ...values import contents, dtype_name, is_tensor
from ...values.kinds import Kind
from ..base import Postponed, Runner, refuse_config
from ..objects.optimizers import OptimizerRunner
from ..options import USE_DEVICE, Options
from . import formats, optimizer_state

_CREATE = "ftn_pytorch_create_optimizer_"
_OPTIMIZERS = {_CREATE + kind: kind for kind in optimizer_state.CLASSES}


class TorchScriptRunner(Runner):
    """A TorchScript model.

    A file may hold the state of an optimizer beside the model: training then goes on where it stopped.

    It is in evaluation mode whatever the file says, or in training mode if ``load`` asked for it; while ``train`` runs
    it is in training mode. The gradient mode is that of the process; the flag for inference mode runs ``forward`` under
    torch.inference_mode. Inputs are separate positional arguments, named ones are keyword arguments. Every method of
    the model can be called by its name.
    """

    backend = "torchscript"
    framework = TORCH

    def __init__(self, path: str, options: Options, config: dict[str, Any]) -> None:
        super().__init__(path, options)
        options.refuse_compile(path, "a TorchScript model")
        refuse_config(path, "a TorchScript model", config)
        self._torch = import_torch(path)
        self.device = device.resolve(self._options.device, TORCH)
        self._checkpoint: Any = None
        self._model, self._optimizer = self._read_all(path)
        self._trained: Callable | None = None
        process.settle_threads()

    def reload(self) -> None:
        """Read the model again, with the state of the optimizer if the file holds one; else that starts afresh."""
        model, optimizer = self._read_all(loading.find(self.path))
        if optimizer is None and self._optimizer is not None:
            optimizer = optimizer_state.started_anew(self._optimizer, self._trainable(model))
        self._model, self._optimizer = model, optimizer
        self._trained = None

    def save(self, file: str) -> None:
        """Write the model and the state of its optimizer; a file of that name is replaced by a complete one only."""
        from ...checkpoint.file import locked, resolve, sign

        extra = {}
        if self._optimizer is not None:
            names = dict(self._model.named_parameters())
            extra[optimizer_state.FILE] = optimizer_state.dumps(self._optimizer.held, names)
        path = resolve(file)
        with fair_lock.lock(), locked(path), files.replaced(path) as stream, _quiet():
            self._torch.jit.save(self._model, stream, _extra_files=extra)
            sign(stream)

    def restore(self, file: str, fallback: bool = False, step: int | None = None) -> int | None:
        """Read a checkpoint, or what ``save`` wrote; an optimizer keeps its state if there is none in it."""
        from ...checkpoint.file import description, resolve

        path = resolve(file)
        if not os.path.isfile(path) or fallback or step is not None or description(path) is not None:
            return self._kept(RESTORE).restore(path, step=step, fallback=fallback)
        self._copy_from(loading.find(path))
        return None

    def _kept(self, wanted: str) -> Any:
        """Model and optimizer, with the random states of the process."""
        from ...checkpoint import Checkpoint

        objects = {"model": self._model}
        if self._optimizer is not None:
            objects["optimizer"] = self._optimizer.held
        if self._checkpoint is None:
            self._checkpoint = Checkpoint()
        return self._checkpoint.of({**objects, **self.attached()})

    def _copy_from(self, path: str) -> None:
        """Copy what a TorchScript file holds into the model, and the state of the optimizer if it has one."""
        if formats.identify(path) != formats.TORCHSCRIPT:
            raise FtnPytorchError("FORMAT", f"{path} is no TorchScript model, as {self.path} needs to be restored")
        model, saved = self._read(path)
        theirs, ours = model.state_dict(), self._model.state_dict()
        # Compared first: load_state_dict would have copied what fits by the time that it finds what does not.
        wrong = sorted(set(theirs) ^ set(ours)) or [name for name in ours if theirs[name].shape != ours[name].shape]
        if wrong:
            raise FtnPytorchError(
                "FORMAT", f"{path} holds another model than {self.path}: they differ in {', '.join(wrong)}"
            )
        parameters.require_digits(theirs, ours, "FORMAT", self.path)
        optimizer = self._resumed(saved, self._model, path) or self._optimizer
        self._model.load_state_dict(theirs)
        for ours, other in zip(self._model.modules(), model.modules()):
            for name, value in contents.fields_in(other, Kind.MODULE).items():
                contents.put(ours, Kind.MODULE, name, value)
        self._optimizer = optimizer

    def find(self, name: str) -> Callable | None:
        if name == FORWARD:
            return self._model
        if name in _OPTIMIZERS:
            return functools.partial(self._create_optimizer, _OPTIMIZERS[name])
        own: dict[str, Callable] = {TRAIN: self._train, SAVE: self.save, RESTORE: self.restore}
        if name in own:
            return own[name]
        return self._method(name) if name in self._methods() else parameters.own_function(self, name)

    def networks(self) -> dict[str, Any]:
        return {"": self._model}

    def functions(self) -> list[str]:
        return [FORWARD, TRAIN, SAVE, RESTORE, *_OPTIMIZERS, *self._methods()]

    def signature(self, name: str) -> inspect.Signature | None:
        if name == FORWARD and self._takes_dictionary():
            return None
        if name == FORWARD or name in self._methods():
            return _signature(self._schema(name))
        return super().signature(name)

    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        function = self.require(name)
        if name == FORWARD and self._takes_dictionary():
            function = _with_dictionary(function)
        if name == FORWARD or name in self._methods():
            function = self._explaining(function, name)
        if flags & USE_DEVICE and self.device is None:
            process.warn(f"{self.path} was loaded to run on the host: module_use_device has its effect in load alone")
        return self._for_tensors(function, name == FORWARD, flags)

    def for_derivatives(self, function: Any) -> Callable:
        """The same function as it is written: rewritten for gradients by torch.jit it would have no tangents."""
        if function is self._model:
            return self._explaining(self._as_written(function), FORWARD)
        is_method = isinstance(function, self._torch.ScriptMethod)
        return self._explaining(self._as_written(function), function.name) if is_method else function

    def _as_written(self, function: Any) -> Callable:
        """A method of the model that torch.jit does not rewrite, whatever it has made of the method in predictions.

        Rewritten, as from its second call on, it has gradients that differ in the last bits.
        """
        method = function.forward if function is self._model else function
        has_hooks = function is self._model and private_names.has_hooks(function)
        copy = None if has_hooks else private_names.own_copy(self._model, method)
        signature = _signature(method.schema)

        def as_written(*args: Any, **named: Any) -> Any:
            with self._torch.jit.optimized_execution(False):
                if copy is None or signature is None:
                    return function(*args, **named)
                given = signature.bind(*args, **named)
                given.apply_defaults()
                return copy(*given.arguments.values())

        return as_written

    def _takes_dictionary(self) -> bool:
        """One argument, a dictionary: its entries are inputs with names."""
        arguments = self._schema(FORWARD).arguments[1:]
        return len(arguments) == 1 and arguments[0].type.kind() == "DictType"

    def _methods(self) -> list[str]:
        return [name for name in private_names.script_methods(self._model) if not name.startswith("_")]

    def _method(self, name: str) -> Any:
        """A method of the model, also where torch.nn.Module has one of that name, which comes first otherwise."""
        found = type(self._model).__getattr__(self._model, name)
        vars(self._model).pop(name, None)  # where torch has kept it, in front of that of torch.nn.Module
        return found

    def _schema(self, name: str) -> Any:
        return (self._model.forward if name == FORWARD else self._method(name)).schema

    def _read(self, path: str) -> tuple[Any, bytes]:
        """The model of a file, and the state of an optimizer or nothing."""
        extra: dict[str, Any] = {optimizer_state.FILE: b""}
        try:
            with _quiet():
                model = self._torch.jit.load(path, map_location=self.device or "cpu", _extra_files=extra)
        except (RuntimeError, ValueError) as failure:
            raise FtnPytorchError("FORMAT", f"{path} cannot be read by torch.jit.load: {summary(failure)}") from failure
        model.train(self._options.training)
        return model, extra[optimizer_state.FILE]

    def _read_all(self, path: str) -> tuple[Any, OptimizerRunner | None]:
        model, saved = self._read(path)
        return model, self._resumed(saved, model, path)

    def _resumed(self, saved: bytes, model: Any, path: str) -> OptimizerRunner | None:
        return optimizer_state.loads(saved, self._trainable(model), path) if saved else None

    def _create_optimizer(self, kind: str, lr: float, **settings: Any) -> None:
        """Make the optimizer that train uses; its settings are keyword arguments, ``betas`` two of them."""
        known = optimizer_state.settings_of(optimizer_state.CLASSES[kind])
        names = {"beta1", "beta2", *known} - {"betas"} if "betas" in known else known
        unknown = set(settings) - names
        if unknown:
            listed = ", ".join(sorted(unknown))
            raise FtnPytorchError("SIGNATURE", f"create_optimizer_{kind} has no setting {listed}")
        if "betas" in known:
            settings["betas"] = (settings.pop("beta1", 0.9), settings.pop("beta2", 0.999))
        trained = self._trainable(self._model).values()
        self._optimizer = OptimizerRunner(optimizer_state.CLASSES[kind], *trained, lr=lr, **settings)

    def _trainable(self, model: Any) -> dict[str, Any]:
        parameters = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
        if not parameters:
            raise FtnPytorchError(
                "ARGUMENT",
                f"{self.path} has no parameters that can be trained (is it frozen, or exported without --trainable?)",
            )
        return parameters

    def _train(self, *args: Any, **named: Any) -> tuple[bool, float] | Postponed:
        """One step of the optimizer on the mean squared error between the model's result and the target.

        The target is the last positional argument or the one named ``target``, all others are inputs. Returns False and
        the loss before the step. If the model has changed inputs it returns the step itself, for the core, which knows
        the inputs that it must not change. Raises HOOK without an optimizer, SHAPE or DTYPE where prediction and target
        differ.
        """
        if self._optimizer is None:
            raise FtnPytorchError("HOOK", "there is no optimizer: call create_optimizer_sgd, _adam or _adamw first")
        if "target" in named:
            target = named.pop("target")
        elif args:
            *args, target = args  # type: ignore[assignment]
        else:
            raise FtnPytorchError("SIGNATURE", "train needs a target, as last argument or with the name 'target'")
        if not is_tensor(target):
            raise FtnPytorchError("ARGUMENT", f"the target of {TRAIN} is a scalar by value: pass an array")
        optimizer = self._optimizer
        optimizer.held.zero_grad()
        inputs = [each for each in (*args, *named.values()) if is_tensor(each) and not each.is_inference()]
        before = [private_names.version_of(each) for each in inputs]
        if self._trained is None:
            whole = self._as_written(self._model)
            self._trained = self._explaining(_with_dictionary(whole) if self._takes_dictionary() else whole, FORWARD)
        self._model.train()
        try:
            prediction = self._trained(*args, **named)
        finally:  # the mode of predictions again
            self._model.train(self._options.training)
        self._compare(prediction, target)
        loss = self._torch.nn.functional.mse_loss(prediction, target)

        def step() -> tuple[bool, float]:
            loss.backward()
            optimizer.step()
            return False, loss.item()

        is_changed = [private_names.version_of(each) for each in inputs] != before
        return Postponed(step) if is_changed else step()

    def _explaining(self, function: Callable, name: str) -> Callable:
        """The same function; where it raises, the text says what to do: to arguments, or to real arrays of other types.

        SIGNATURE for arguments that do not fit.
        """

        def explaining(*args: Any, **named: Any) -> Any:
            try:
                return function(*args, **named)
            except (RuntimeError, TypeError) as failure:
                conventions.check_call(name, self.signature(name), args, named)
                advice = _advice_on_types(self._model, (*args, *named.values()))
                if not advice:
                    raise
                raise FtnPytorchError("PYTHON", f"{summary(failure)}\n{advice}\n{trace(failure)}") from failure

        return explaining

    def _compare(self, prediction: Any, target: Any) -> None:
        if not isinstance(prediction, self._torch.Tensor):
            kind = type(prediction).__name__
            raise FtnPytorchError(
                "RESULT_TYPE", f"train needs a model that returns one tensor, this one returns a {kind}"
            )
        if prediction.shape != target.shape:
            raise FtnPytorchError(
                "SHAPE",
                f"the prediction has shape {tuple(prediction.shape)} and the target {tuple(target.shape)}: they must "
                "be equal, since broadcasting one against the other would train to the mean",
            )
        if prediction.dtype != target.dtype:
            raise FtnPytorchError(
                "DTYPE",
                f"the prediction is {dtype_name(prediction)} and the target {dtype_name(target)}: they must be of one "
                "type. Declare the target so, or convert real arrays on their way in with load(..., dtype=)",
            )


def _advice_on_types(model: Any, values: Iterable[Any]) -> str:
    """What to do about real arrays of another type than the parameters; empty if there are none, or several types."""
    types = {dtype_name(parameter) for parameter in model.parameters() if parameter.is_floating_point()}
    if types not in ({"float32"}, {"float64"}):
        return ""
    (wanted,) = types
    arrays = [value for value in values if is_tensor(value) and value.is_floating_point()]
    if all(dtype_name(array) == wanted for array in arrays):
        return ""
    given = ", ".join(f"{dtype_name(array)} array of shape {tuple(array.shape)}" for array in arrays)
    return (
        f'It was called with ({given}). The parameters of the model are {wanted}: load(..., dtype="{wanted}") converts '
        "real arrays on their way in."
    )


def _with_dictionary(model: Callable) -> Callable:
    def forward(*args: Any, **named: Any) -> Any:
        if args:
            raise FtnPytorchError(
                "SIGNATURE", "the model takes a dictionary: give the inputs the names of its entries, torch_in(name, x)"
            )
        return model(named)

    return forward


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch.jit warns of its deprecation in each call; whoever has such a file cannot do anything about it here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torch.jit", category=DeprecationWarning)
        yield


def _signature(schema: Any) -> inspect.Signature | None:
    """Signature of a method from its TorchScript schema, without ``self``; None where Python could not write it."""
    parameters = []
    for argument in schema.arguments[1:]:
        kind = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        if not argument.name.isidentifier():
            return None
        parameters.append(inspect.Parameter(argument.name, kind, default=default))
    return inspect.Signature(parameters)
