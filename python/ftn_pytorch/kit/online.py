# SPDX-License-Identifier: MIT
"""A LightningModule that is trained by the calls of a simulation: Lightning's own loop, one batch for each call."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError, missing_package, require_count
from ..system import trial
from .handoff import Handoff, LoopEnd
from .outcome import number
from .unrecorded import Number, unrecorded

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.callbacks import Checkpoint, ModelSummary, ProgressBar
    from lightning.pytorch.loggers.logger import DummyLogger
    from lightning.pytorch.plugins import CheckpointIO, TorchCheckpointIO
    from lightning.pytorch.plugins.environments import LightningEnvironment
    from lightning.pytorch.utilities.exceptions import MisconfigurationException
    from lightning.pytorch.utilities.seed import isolate_rng
except ImportError as failure:
    raise missing_package("Online", failure, "lightning") from failure

# torch tells Lightning so in the first step. Who simulates can do nothing about it.
warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated")

# The name under which a checkpoint of the trainer stays in memory.
_MEMORY = "ftn_pytorch: in memory"
_ADVICE = "call it outside of the recorded function"
_GRADIENTS = "ftn_pytorch_gradients"


@unrecorded(_ADVICE, call="call its module, in evaluation mode, by a name of the script")
class Online:
    """Deprecated (docs/kit/online.md). ``step(*batch)`` has a Trainer of Lightning train ``module`` on one batch.

    ``module``: a LightningModule. ``steps_per_epoch``: after so many steps an epoch ends, with its hooks and
    schedulers; by default there is one epoch without end. All other options are those of ``lightning.pytorch.Trainer``.
    Unlike there, the defaults are no limit of epochs, no files (``logger``, ``enable_checkpointing``), nothing on the
    terminal, no sanity check, and one device: that of the parameters.

    A restart goes on bit for bit, but for what follows means over an epoch, which Lightning does not save: they cover
    the batches since the restart, and schedulers with ``monitor=`` leave out the first end of an epoch after it.

    ``Trainer.fit`` runs in a thread of its own, which waits between the steps. ARGUMENT for more than one device.
    """

    is_completed = Number()
    """Whether the Trainer has ended the training: max_steps, max_epochs, max_time, or a callback."""
    loss = Number()
    """What training_step has returned last, detached; infinite before the first step."""

    def __init__(self, module: LightningModule, *, steps_per_epoch: int | None = None, **options: Any) -> None:
        if not isinstance(module, LightningModule):
            raise FtnPytorchError(
                "ARGUMENT",
                f"Online: the module is a {type(module).__module__}.{type(module).__qualname__}, it must be a "
                "lightning.pytorch.LightningModule (the package pytorch_lightning has a class of its own)",
            )
        if steps_per_epoch is not None:
            require_count("Online: steps_per_epoch", steps_per_epoch)
        self.module, self._options = module, options
        self.is_completed, self.loss = False, math.inf
        self._turn = threading.Lock()
        self._handoff = Handoff(sys.maxsize if steps_per_epoch is None else steps_per_epoch)
        self._outcome, self._memory = _Outcome(), _Memory()
        self._has_begun = False
        # What the next fit goes on from, a checkpoint of Lightning.
        self._kept: dict[str, Any] | None = None
        # Also at the end of the process: loggers then write what they have.
        weakref.finalize(self, self._handoff.end)

    @functools.cached_property
    def trainer(self) -> Trainer:
        """Lightning's Trainer; made by the first step, when the module is on its device."""
        with _quiet():
            return _trainer(self.module, self._options, self._outcome, self._memory)

    def step(self, *batch: Any) -> tuple[bool, Any]:
        """Train on a batch, ``batch[0]`` or a tuple of several; ``(is_completed, loss)``, as ftn_pytorch_train returns.

        The loss is what training_step returned, NaN if it returned none. After ``is_completed`` nothing is learnt.
        What a hook raises comes with its traceback (PYTHON); the next call goes on. ARGUMENT for a module that
        Lightning cannot train, and for a call from within a step.
        """
        if self._handoff.is_here():
            raise FtnPytorchError("ARGUMENT", "Online: step was called by the step itself: call it elsewhere")
        with self._turn:
            if not self.is_completed and not self._handoff.is_alive():
                self._begin()
            if self.is_completed:
                return True, self.loss
            self._outcome.loss = math.nan
            over = self._handoff.hand(batch[0] if len(batch) == 1 else batch)
            if over is not None:
                self._end(over)
            self.loss = self._outcome.loss
            return self.is_completed, self.loss

    @torch.inference_mode()
    def __call__(self, *inputs: Any) -> Any:
        """``module(*inputs)`` in evaluation mode, without gradients. Each part is in its own mode again afterwards."""
        training = [each for each in self.module.modules() if each.training]
        for each in training:
            each.training = False
        try:
            return self.module(*inputs)
        finally:
            for each in training:
                each.training = True

    def stop(self) -> None:
        """End ``Trainer.fit`` with its last hooks, as the end of the program does. The next step goes on from here."""
        if self._handoff.is_here():
            raise FtnPytorchError("ARGUMENT", "Online: stop was called by the step itself: call it elsewhere")
        with self._turn:
            if self._handoff.is_alive():
                self._kept = self._checkpoint()
                self._handoff.end()

    def state_dict(self) -> dict[str, Any]:
        """The checkpoint of Lightning, without hyperparameters, which the script gives again."""
        trainer, weights = (None, self.module.state_dict()) if not self._has_begun else (self._checkpoint(), None)
        return {
            "trainer": trainer,
            "weights": weights,
            "is_completed": self.is_completed,
            "loss": number(self.loss),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """End ``Trainer.fit`` if it runs; the next step goes on from the state. FORMAT for one of another module."""
        with self._turn:
            self._handoff.end()
            trainer = state["trainer"]
            weights = state["weights"] if trainer is None else trainer["state_dict"]
            try:
                self.module.load_state_dict(weights, strict=self.module.strict_loading)
            except RuntimeError as failure:
                raise FtnPytorchError("FORMAT", f"Online: the file is of another module: {failure}") from failure
            if trainer is None:
                vars(self).pop("trainer", None)
            self._kept, self._has_begun = trainer, trainer is not None
            self.is_completed, self.loss = state["is_completed"], state["loss"]

    def _begin(self) -> None:
        module, trainer, kept = self.module, self.trainer, self._kept
        self._memory.held = kept
        # Lightning draws random numbers when it starts, which a run without a restart does not do here.
        with _quiet(), contextlib.nullcontext() if kept is None else isolate_rng():
            over = self._handoff.begin(
                lambda batches: trainer.fit(module, batches, ckpt_path=None if kept is None else _MEMORY),
                lambda: setattr(trainer, "should_stop", True),
            )
        if over is None:
            self._kept, self._has_begun = None, True
            for name, gradient in {} if kept is None else kept[_GRADIENTS].items():
                parameter = module.get_parameter(name)
                parameter.grad = gradient.to(parameter)
        elif over.failure is None:
            self.is_completed = self._has_begun = True
        elif isinstance(over.failure, MisconfigurationException):
            raise FtnPytorchError(
                "ARGUMENT", f"Online: Lightning cannot train {type(module).__qualname__}: {over.failure}"
            ) from over.failure
        else:
            raise over.failure

    def _end(self, over: LoopEnd) -> None:
        if over.failure is None:
            self.is_completed = True
            return
        self._kept = self._checkpoint()
        raise over.failure

    def _checkpoint(self) -> dict[str, Any]:
        if self._kept is not None:
            return self._kept
        with _quiet():
            self.trainer.save_checkpoint(_MEMORY, weights_only=False)
        made, self._memory.held = self._memory.held, None
        assert made is not None
        for name in (self.module.CHECKPOINT_HYPER_PARAMS_KEY, self.module.CHECKPOINT_HYPER_PARAMS_TYPE):
            made.pop(name, None)
        # What was added up for a step that is still to come, which Lightning does without.
        is_due = self.trainer.accumulate_grad_batches > 1
        parameters = self.module.named_parameters() if is_due else ()
        made[_GRADIENTS] = {name: each.grad for name, each in parameters if each.grad is not None}
        return made


class _Outcome(Callback):
    """Takes the loss from Lightning's loop."""

    def __init__(self) -> None:
        self.loss: Any = math.nan

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is not None:
            # Lightning divides it by the number of batches whose gradients are added.
            parts = trainer.accumulate_grad_batches if pl_module.automatic_optimization else 1
            self.loss = loss if parts == 1 else loss * parts


class _Memory(CheckpointIO):
    """Checkpoints of one name stay in memory; others go where they went."""

    def __init__(self) -> None:
        self.held: dict[str, Any] | None = None
        self.files: CheckpointIO = TorchCheckpointIO()

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        if path == _MEMORY:
            self.held = checkpoint
        else:
            self.files.save_checkpoint(checkpoint, path, storage_options)

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        if path == _MEMORY:
            assert self.held is not None
            return dict(self.held)
        return self.files.load_checkpoint(path, map_location, weights_only)

    def remove_checkpoint(self, path: Any) -> None:
        self.files.remove_checkpoint(path)

    def teardown(self) -> None:
        self.files.teardown()


class _Alone(LightningEnvironment):
    """One process, whatever the launcher of the simulation has put into the environment."""

    def local_rank(self) -> int:
        return 0

    def node_rank(self) -> int:
        return 0

    def teardown(self) -> None:
        pass


def _trainer(module: LightningModule, options: Mapping[str, Any], outcome: _Outcome, memory: _Memory) -> Trainer:
    callbacks, plugins = _listed(options.get("callbacks")), _listed(options.get("plugins"))
    given = [each for each in plugins if isinstance(each, CheckpointIO)]
    if given:
        memory.files = given[0]
    if trial.is_on():
        callbacks = [each for each in callbacks if not isinstance(each, Checkpoint)]
        options = {**options, "logger": DummyLogger(), "enable_checkpointing": False}
    environment = _Alone()
    environment.set_global_rank(0)

    def has(kind: type) -> bool:
        return any(isinstance(each, kind) for each in callbacks)

    device = next((each.device for each in module.parameters()), torch.get_default_device())
    defaults = {
        "accelerator": {"cuda": "gpu"}.get(device.type, device.type),
        "devices": 1 if device.index is None else [device.index],
        "max_epochs": -1,
        "logger": False,
        "enable_checkpointing": has(Checkpoint),
        "enable_progress_bar": has(ProgressBar),
        "enable_model_summary": has(ModelSummary),
        "num_sanity_val_steps": 0,
    }
    ours = {
        "callbacks": [*callbacks, outcome],
        "plugins": [memory, environment, *(each for each in plugins if each not in given)],
    }
    made = Trainer(**{**defaults, **options, **ours})
    if made.world_size > 1 or made.strategy.launcher is not None:
        raise FtnPytorchError(
            "ARGUMENT",
            f"Online: a Trainer of {made.world_size} devices starts other processes of the program: give it devices=1. "
            "Ranks of MPI train one network with ftn_pytorch.average_gradients",
        )
    return made


def _listed(given: Any) -> list[Any]:
    return [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What Lightning tells at its start, of devices, files and what it recommends, is not for those who simulate."""
    logger = logging.getLogger("lightning.pytorch")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # The same module is validated offline.
            warnings.filterwarnings("ignore", "You defined a `validation_step`")
            yield
    finally:
        logger.setLevel(before)
