# SPDX-License-Identifier: MIT
"""Where numbers of a training may go besides a file: TensorBoard, Weights & Biases, MLflow, any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import FtnPytorchError, imported


class _Tracker:
    """``run``: where a run has an identifier, a restart goes on with it."""

    run: Any = None

    def restart(self, run: Any) -> None:
        self.run = run

    def flush(self) -> None:
        pass


class TensorBoard(_Tracker):
    """``options``: the folder of the run. Events of a run that was killed after the restored step are passed over."""

    def __init__(self, options: str) -> None:
        # Asked for first: torch.utils.tensorboard says less about what is missing.
        wanted = "Log(tensorboard=...)", "tensorboard"
        imported("tensorboard", *wanted)
        self._make = imported("torch.utils.tensorboard", *wanted).SummaryWriter
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


class _Run(_Tracker):
    """One of a package, which begins with the first numbers."""

    package = ""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._started: Any = None
        self._module = imported(self.package, f"Log({self.package}=...)", self.package)

    def _begun(self, begin: Callable[..., Any], **resumed: Any) -> Any:
        """``resumed``: options beside those of the user, where a run is gone on with."""
        return begin(**{**self._options, **({} if self.run is None else resumed)})


class Wandb(_Run):
    """``options``: arguments of ``wandb.init``."""

    package = "wandb"

    def write(self, step: int, values: Mapping[str, float]) -> None:
        if self._started is None:
            self._started = self._begun(self._module.init, id=self.run, resume="allow")
            self.run = self._started.id
            # wandb drops rows whose own step is not larger than the last one, as after a restart
            self._started.define_metric("*", step_metric="step")
        self._started.log({"step": step, **values})


class MLflow(_Run):
    """``options``: arguments of ``mlflow.start_run``."""

    package = "mlflow"

    def write(self, step: int, values: Mapping[str, float]) -> None:
        if self._started is None:
            self._started = self._begun(self._module.start_run, run_id=self.run)
            self.run = self._started.info.run_id
        self._module.log_metrics(dict(values), step=step, run_id=self.run)


class Tracker(_Tracker):
    """``options``: an object with ``log(values, step=)``, whose maker begins its run and goes on with it."""

    def __init__(self, options: Any) -> None:
        self._log: Any = getattr(options, "log", None)
        if not callable(self._log):
            raise FtnPytorchError("ARGUMENT", f"Log(tracker=...): {type(options).__name__} has no function log")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._log(dict(values), step=step)


KINDS = {"tensorboard": TensorBoard, "wandb": Wandb, "mlflow": MLflow, "tracker": Tracker}
