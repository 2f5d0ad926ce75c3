# SPDX-License-Identifier: MIT
"""Where numbers of a training may go besides a file: TensorBoard, Weights & Biases, MLflow, any other."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from ..errors import FtnPytorchError, missing_package


def _import(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as failure:
        raise missing_package(f"Log({package}=...)", failure, package) from failure


class TensorBoard:
    """``options``: the folder of the run. Events of a run that was killed after the restored step are passed over."""

    def __init__(self, options: str) -> None:
        # Asked for first: torch.utils.tensorboard says less about what is missing.
        _import("tensorboard", "tensorboard")
        self._make = _import("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self._folder, self._writer = options, None  # type: Any, Any

    def write(self, step: int, values: Mapping[str, float]) -> None:
        if self._writer is None:
            self._writer = self._make(self._folder, purge_step=step)
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def restart(self, run: Any) -> None:
        self._writer = None

    run = None


class _Run:
    """A run that has an identifier, by which a restart goes on with it."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options, self.run = dict(options), None
        self._started: Any = None

    def restart(self, run: Any) -> None:
        self.run = run

    def flush(self) -> None:
        pass


class Wandb(_Run):
    """``options``: arguments of ``wandb.init``."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._module = _import("wandb", "wandb")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        if self._started is None:
            resumed: dict = {} if self.run is None else {"id": self.run, "resume": "allow"}
            self._started = self._module.init(**{**self._options, **resumed})
            self.run = self._started.id
            # wandb drops rows whose own step is not larger than the last one, as after a restart
            self._started.define_metric("*", step_metric="step")
        self._started.log({"step": step, **values})


class MLflow(_Run):
    """``options``: arguments of ``mlflow.start_run``."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._module = _import("mlflow", "mlflow")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        if self._started is None:
            resumed: dict = {} if self.run is None else {"run_id": self.run}
            self._started = self._module.start_run(**{**self._options, **resumed})
            self.run = self._started.info.run_id
        self._module.log_metrics(dict(values), step=step, run_id=self.run)


class Tracker:
    """``options``: an object with ``log(values, step=)``, whose maker begins its run and goes on with it."""

    run = None

    def __init__(self, options: Any) -> None:
        self._log: Any = getattr(options, "log", None)
        if not callable(self._log):
            raise FtnPytorchError("ARGUMENT", f"Log(tracker=...): {type(options).__name__} has no function log")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._log(dict(values), step=step)

    def flush(self) -> None:
        pass

    def restart(self, run: Any) -> None:
        pass


KINDS = {"tensorboard": TensorBoard, "wandb": Wandb, "mlflow": MLflow, "tracker": Tracker}
