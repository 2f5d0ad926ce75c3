# SPDX-License-Identifier: MIT
"""The range of each column that was learnt, and what lies outside of it."""

# No postponed annotations: TorchScript cannot read them.
from collections.abc import Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError, require_count
from ..ranks import totals
from ..system import thread_recorder
from . import over_ranks as ranks


class LearntRange(torch.nn.Module):
    """Deprecated (docs/kit/guard.md). Smallest and largest value of each column, the last axis, of what was learnt.

    A call with (..., columns) gives (...), bool: True where a fallback should answer, as a value is outside of what was
    learnt, or not a number; everywhere before anything was learnt. As a part of a network that returns this beside its
    prediction it is exported with it.

    The limits are buffers in double precision, ``low`` and ``high``, written in place. Do not convert the module.
    ``over_ranks``: ``learn`` is given the samples of all ranks, which may have none; all ranks of the communicator call
    it.
    """

    low: torch.Tensor
    high: torch.Tensor

    def __init__(self, columns: int, *, over_ranks: bool | None = None) -> None:
        super().__init__()
        require_count("LearntRange: columns", columns)
        self.over_ranks = over_ranks
        # The range that nothing is in
        self.register_buffer("low", torch.full((columns,), torch.inf, dtype=torch.float64))
        self.register_buffer("high", torch.full((columns,), -torch.inf, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(...): True for rows of (..., columns) with a value that is not in the range."""
        return self.found(x).any(-1)

    def found(self, x: torch.Tensor) -> torch.Tensor:
        """True for each value of (..., columns) that is not in the range of its column; NaN is in no range."""
        # Rounding to the type of x keeps order, so what was learnt stays inside in any type.
        return ~((x >= self.low.to(x.dtype)) & (x <= self.high.to(x.dtype)))

    @torch.jit.unused
    @torch.no_grad()
    def learn(self, x: torch.Tensor) -> None:
        """Widen the range to ``x``, (..., columns).

        SHAPE if it has other columns, DTYPE if it is not real, ARGUMENT if it is not finite, over ranks if that of one
        of them is not: then nothing is learnt.
        """
        self._learn(x, "LearntRange")

    @torch.jit.unused
    def _learn(self, x: torch.Tensor, part: str) -> None:
        columns = len(self.low)
        if x.ndim < 1 or x.shape[-1] != columns:
            raise FtnPytorchError("SHAPE", f"{part}: inputs have shape {tuple(x.shape)}, expected is (n, {columns})")
        if x.is_complex():
            raise FtnPytorchError("DTYPE", f"{part}: the inputs are {x.dtype}; a range is of real numbers")
        rows = x.detach().reshape(-1, columns)
        empty = torch.full((columns,), -torch.inf, dtype=torch.float64, device=x.device)
        low, high = (-rows.amin(0).double(), rows.amax(0).double()) if len(rows) else (empty, empty)
        is_finite = torch.isfinite(low + high).all() if len(rows) else torch.ones((), dtype=torch.bool, device=x.device)
        if ranks.asked_for(self.over_ranks, part, "learns a range of its own"):
            # NaN is never the largest: what is wrong is told by a number of its own.
            limits = torch.cat([low, high, (~is_finite).reshape(1).to(low)]).nan_to_num(0.0, torch.inf, -torch.inf)
            most = totals.largest(limits, f"{columns} columns", f"{part}.learn")
            low, high, is_finite = most[:columns], most[columns:-1], most[-1] == 0
        if not is_finite:
            raise FtnPytorchError("ARGUMENT", f"{part}: a range cannot be learnt from numbers that are not finite")
        self.low.copy_(torch.minimum(self.low, -low.to(self.low)))
        self.high.copy_(torch.maximum(self.high, high.to(self.high)))


class CountedRange:
    """A range whose columns are those of the first inputs, and how many values of each column were outside.

    All is written in place from the first ``learn`` on, so that a recording of ``outside`` goes on with what is learnt
    and restored later.
    """

    def __init__(self, over_ranks: bool | None) -> None:
        self._over_ranks = over_ranks
        self._range: LearntRange | None = None
        self._counts: torch.Tensor | None = None
        self._is_learnt = False

    @property
    def counts(self) -> torch.Tensor | None:
        """None before anything was learnt."""
        return self._counts if self._is_learnt else None

    @torch.no_grad()
    def learn(self, x: torch.Tensor) -> None:
        """Widen the range to ``x``, (n, columns). SHAPE if it has other columns, ARGUMENT if it is not finite."""
        self._check(x)
        known, counts = self._range, self._counts
        if known is None or counts is None:
            known, counts = _made(x, self._over_ranks)
        known._learn(x, "Guard")
        if bool((known.low > known.high).any()):
            return  # no rank has rows
        self._range, self._counts = known, counts
        if not self._is_learnt:
            counts.zero_()
        self._is_learnt = True

    @torch.no_grad()
    def outside(self, x: torch.Tensor) -> torch.Tensor:
        """(n,): True for rows of (n, columns) with a value out of range; all of them before anything was learnt."""
        self._check(x)
        if self._range is None or self._counts is None:
            thread_recorder.refuse("it calls outside of kit.Guard, which has learnt no range: call learn_range before")
            return torch.ones(len(x), dtype=torch.bool, device=x.device)
        thread_recorder.keep(self._range.low, self._range.high, self._counts)
        found = self._range.found(x)
        self._counts += found.sum(0)
        return found.any(1)

    def _check(self, x: torch.Tensor) -> None:
        columns = None if self._range is None else len(self._range.low)
        if x.ndim != 2 or (columns is not None and x.shape[1] != columns):
            wanted = "columns" if columns is None else columns
            raise FtnPytorchError("SHAPE", f"Guard: inputs have shape {tuple(x.shape)}, expected is (n, {wanted})")

    def state_dict(self) -> dict[str, Any]:
        if self._range is None or not self._is_learnt:
            return {"low": None, "high": None, "counts": None}
        counts = None if self._over_ranks else self._counts
        return {"low": self._range.low, "high": self._range.high, "counts": counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """FORMAT if it is of another number of columns."""
        low = state["low"]
        here = None if self._range is None else len(self._range.low)
        if low is not None and here not in (None, len(low)):
            raise FtnPytorchError("FORMAT", f"Guard: {len(low)} columns in the file and {here} here")
        if self._range is None and low is not None:
            self._range, self._counts = _made(low.cpu()[None], self._over_ranks)
        if self._range is None or self._counts is None:
            return
        # In place, on the device where they are; those of a file come back on the host.
        for mine, name, nothing in (
            (self._range.low, "low", torch.inf),
            (self._range.high, "high", -torch.inf),
            (self._counts, "counts", 0),
        ):
            mine.fill_(nothing) if state[name] is None else mine.copy_(state[name])
        self._is_learnt = low is not None


def _made(like: torch.Tensor, over_ranks: bool | None) -> tuple[LearntRange, torch.Tensor]:
    """For the columns of (n, columns), on their device."""
    with torch.inference_mode(False):
        made = LearntRange(like.shape[1], over_ranks=over_ranks).to(like.device)
        return made, torch.zeros(like.shape[1], dtype=torch.int64, device=like.device)
