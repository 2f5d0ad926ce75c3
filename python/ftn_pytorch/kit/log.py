# SPDX-License-Identifier: MIT
"""The numbers of a training, for a file, for a person at a terminal, and for trackers."""

from __future__ import annotations

import datetime
import operator
import os
import sys
import time
import weakref
from collections.abc import Mapping
from typing import Any

from ..errors import FtnPytorchError
from ..ranks import own_rank, totals
from ..system import process, trial
from . import over_ranks as ranks
from . import trackers
from .csv_file import Rows
from .timing import Timing
from .unrecorded import Number, unrecorded

_ADVICE = "return the numbers, and log them outside of the recorded function"


@unrecorded(_ADVICE)
class Log:
    """Writes numbers by step: ``log.write(step, loss=loss)``.

    ``path``: a CSV file, ``%r`` in its name becomes the rank. After a restart it is cut behind the row of the
    checkpoint. A run that begins anew renames an older file to ``path`` + ".abandoned" (".abandoned.2", ...), and so
    does one that finds the rows of another run. Steps may begin from 1 again, for a second phase of the training. The
    file is locked from the first row on. ``console``: seconds between lines on standard error, with
    the rate and, where ``last`` is the last step, the estimated end; by default none. ``tensorboard``: a folder;
    ``wandb``, ``mlflow``: arguments of ``wandb.init`` and ``mlflow.start_run``. IMPORT if such a package is missing.
    ``tracker``: any object with ``log(values, step=)``; ARGUMENT if it has no such function.

    ``over_ranks``: all ranks of the communicator call ``write``, and rank 0 alone writes, the means of their numbers.
    """

    step = Number()
    """The last one written; None before the first."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        console: float | None = None,
        last: int | None = None,
        over_ranks: bool | None = None,
        **also: Any,
    ) -> None:
        path = None if path is None else os.fspath(path)
        if over_ranks and path is not None and "%r" in path:
            raise FtnPytorchError("ARGUMENT", f"Log: over_ranks=True writes one file, and {path} has one for each rank")
        # A rank that writes what all have is silent but for rank 0. What is loaded for a node has no rank yet.
        self._silent = False if not over_ranks else own_rank.rank() > 0 if also or own_rank.is_known() else None
        is_trial = trial.is_on()
        self._rows = None if path is None or is_trial else Rows(own_rank.with_rank(path), "%r" in path)
        self._console, self._last = console, last
        self._over_ranks = False if over_ranks is None and (path is None or "%r" in path) else over_ranks
        unknown = sorted(set(also) - set(trackers.KINDS))
        if unknown:
            raise FtnPytorchError("ARGUMENT", f"Log: {', '.join(unknown)} is none of {', '.join(trackers.KINDS)}")
        used = {} if is_trial or self._silent else also
        self._trackers: dict[str, Any] = {name: trackers.KINDS[name](options) for name, options in used.items()}
        self.step = None
        self.timing = Timing()
        """A decorator, or what ``with`` takes, for what counts as time in Python. Each row then has python_share."""
        self._begin: tuple[int, float] | None = None
        self._told = 0.0
        if self._rows is not None:
            # Its buffer is written when the process ends, also where Python is never finalized.
            weakref.finalize(self, _end, self._rows)

    def write(self, step: int, **values: Any) -> None:
        """Numbers, or tensors of one element. ARGUMENT for others, FILE if the disk is full; the training stays.

        LOCKED if another log writes this file, of this process or of another one.

        Over ranks all write the same names and step, otherwise FORMAT on all of them.
        """
        numbers = {name: _number(name, value) for name, value in values.items()}
        step = _step(step)
        if self.timing.is_used:
            numbers["python_share"] = self.timing.share()
        if ranks.asked_for(self._over_ranks, "Log", "writes the file by itself"):
            numbers = _means_over_ranks(step, numbers)
        if self._silent is None:
            self._silent = own_rank.rank() > 0
        if not self._silent:
            self._write(step, numbers)
        self.step = step

    def _write(self, step: int, numbers: Mapping[str, float]) -> None:
        if self._rows is not None:
            self._rows.write(step, numbers)
        for each in self._trackers.values():
            each.write(step, numbers)
        if self._console is not None:
            self._tell(step, numbers)

    def flush(self) -> None:
        """Write to the disk what is buffered, which happens by itself once a second and with each checkpoint."""
        if self._rows is not None:
            self._rows.flush(to_disk=True)
        for each in self._trackers.values():
            each.flush()

    def state_dict(self) -> dict[str, Any]:
        """The last step and row, up to which the file is on the disk, and the runs of trackers."""
        self.flush()
        rows, digest = (None, None) if self._rows is None else (self._rows.count, self._rows.digest)
        runs = {name: each.run for name, each in self._trackers.items()}
        return {"step": self.step, "rows": rows, "digest": digest, "runs": runs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on after that row: what the file has behind it goes with the next one."""
        self.step, self._begin = state["step"], None
        if self._rows is not None:
            self._rows.go_on_after(self.step, state.get("rows"), state.get("digest"))  # earlier versions had neither
        for name, each in self._trackers.items():
            each.restart(state["runs"].get(name))

    def _tell(self, step: int, numbers: Mapping[str, float]) -> None:
        now = time.monotonic()
        if self._begin is None:
            self._begin, self._told = (step, now), now
        elif now - self._told >= self._console:  # type: ignore[operator]
            self._told = now
            print(line(step, numbers, self._begin, now, self._last), file=sys.stderr, flush=True)


def _means_over_ranks(step: int, numbers: Mapping[str, float]) -> dict[str, float]:
    import torch

    mine = torch.tensor([1.0, *numbers.values()], dtype=torch.float64, device="cpu")
    size, *sums = totals.total(mine, f"step {step} with {', '.join(numbers) or 'nothing'}", "Log.write").tolist()
    return {name: each / size for name, each in zip(numbers, sums)}


def _number(name: str, value: Any) -> float:
    if type(value) in (int, float):
        return value
    try:
        # torch warns of float() for a loss that has a graph.
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError) as failure:
        raise FtnPytorchError("ARGUMENT", f"Log: {name} is no number: {failure}") from failure


def _step(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError as failure:
        raise FtnPytorchError("ARGUMENT", f"Log: the step is {value!r}, it must be a whole number") from failure


def _end(rows: Rows) -> None:
    try:
        rows.close()
    except FtnPytorchError as failure:
        process.warn(failure.text)


def line(step: int, numbers: Mapping[str, float], begin: tuple[int, float], now: float, last: int | None) -> str:
    """What a person is told: ``begin`` is a step and when it was written, in seconds."""
    rate = (step - begin[0]) / max(now - begin[1], 1e-9)
    parts = [f"step {step}" if last is None else f"step {step} of {last}"]
    parts += [f"{name} {value:.4g}" for name, value in numbers.items()]
    parts.append(f"{rate:.3g} steps/s")
    if last is not None and rate > 0:
        left = datetime.timedelta(seconds=round(max(last - step, 0) / rate))
        end = datetime.datetime.now() + left
        parts.append(f"ends in {left}, {end:%d %b %H:%M}")
    return "  ".join(parts)
