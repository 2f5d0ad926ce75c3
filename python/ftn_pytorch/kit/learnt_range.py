# SPDX-License-Identifier: MIT
"""The range of each column that was learnt, and what lies outside of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError
from ..host import thread_recorder


class Range:
    """Smallest and largest value of each column, (columns,), of all that ``learn`` was given: ``low`` and ``high``.

    ``counts``: how many values of each column ``outside`` has found outside. All are written in place from the first
    ``learn`` on, so that a recording of ``outside`` goes on with what is learnt and restored later.
    """

    def __init__(self) -> None:
        self.low: torch.Tensor | None = None
        self.high: torch.Tensor | None = None
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
        if not len(x):
            return
        low, high = x.amin(0), x.amax(0)
        if not (torch.isfinite(low) & torch.isfinite(high)).all():
            raise FtnPytorchError("ARGUMENT", "Guard: a range cannot be learnt from numbers that are not finite")
        if self.low is None or self.high is None or self._counts is None:
            self._make(low)
        if not self._is_learnt:
            self._counts.zero_()  # type: ignore[union-attr]
        self.low.copy_(torch.minimum(self.low, low))  # type: ignore[union-attr, arg-type]
        self.high.copy_(torch.maximum(self.high, high))  # type: ignore[union-attr, arg-type]
        self._is_learnt = True

    @torch.no_grad()
    def outside(self, x: torch.Tensor) -> torch.Tensor:
        """(n,): True for rows of (n, columns) with a value out of range; all of them before anything was learnt."""
        self._check(x)
        if self.low is None or self.high is None or self._counts is None:
            thread_recorder.refuse("it calls outside of kit.Guard, which has learnt no range: call learn_range before")
            return torch.ones(len(x), dtype=torch.bool, device=x.device)
        thread_recorder.keep(self.low, self.high, self._counts)
        # NaN is in no range.
        found = ~((x >= self.low) & (x <= self.high))
        self._counts += found.sum(0)
        return found.any(1)

    def _make(self, like: torch.Tensor) -> None:
        """The range that nothing is in."""
        with torch.inference_mode(False):
            self.low = torch.full(like.shape, torch.inf, dtype=like.dtype, device=like.device)
            self.high = torch.full_like(self.low, -torch.inf)
            self._counts = torch.zeros_like(self.low, dtype=torch.int64)

    def _check(self, x: torch.Tensor) -> None:
        if x.ndim != 2 or (self.low is not None and x.shape[1:] != self.low.shape):
            wanted = "(n, columns)" if self.low is None else f"(n, {len(self.low)})"
            raise FtnPytorchError("SHAPE", f"Guard: inputs have shape {tuple(x.shape)}, expected is {wanted}")

    def state_dict(self) -> dict[str, Any]:
        if not self._is_learnt:
            return {"low": None, "high": None, "counts": None}
        return {"low": self.low, "high": self.high, "counts": self._counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """FORMAT if it is of another number of columns."""
        low = state["low"]
        if self.low is not None and low is not None and self.low.shape != low.shape:
            raise FtnPytorchError("FORMAT", f"Guard: {len(low)} columns in the file and {len(self.low)} here")
        if self.low is None and low is not None:
            self._make(low.cpu())
        # In place, on the device where they are; those of a file come back on the host.
        for mine, name, nothing in (
            (self.low, "low", torch.inf),
            (self.high, "high", -torch.inf),
            (self._counts, "counts", 0),
        ):
            if mine is not None:
                mine.fill_(nothing) if low is None else mine.copy_(state[name])
        self._is_learnt = low is not None
