# SPDX-License-Identifier: MIT
"""The range of each column that was learnt, and what lies outside of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..errors import FtnPytorchError


class Range:
    """Smallest and largest value of each column, (columns,), of all that ``learn`` was given: ``low`` and ``high``.

    ``counts``: how many values of each column ``outside`` has found outside.
    """

    def __init__(self) -> None:
        self.low: torch.Tensor | None = None
        self.high: torch.Tensor | None = None
        self.counts: torch.Tensor | None = None

    @torch.no_grad()
    def learn(self, x: torch.Tensor) -> None:
        """Widen the range to ``x``, (n, columns). SHAPE if it has other columns, ARGUMENT if it is not finite."""
        self._check(x)
        if not len(x):
            return
        low, high = x.amin(0), x.amax(0)
        if not (torch.isfinite(low) & torch.isfinite(high)).all():
            raise FtnPytorchError("ARGUMENT", "Guard: a range cannot be learnt from numbers that are not finite")
        if self.low is None or self.high is None:
            self.low, self.high, self.counts = low, high, torch.zeros_like(low, dtype=torch.int64)
        else:
            self.low, self.high = torch.minimum(self.low, low), torch.maximum(self.high, high)

    @torch.no_grad()
    def outside(self, x: torch.Tensor) -> torch.Tensor:
        """(n,): True for rows of (n, columns) with a value out of range; all of them before anything was learnt."""
        self._check(x)
        if self.low is None or self.high is None or self.counts is None:
            return torch.ones(len(x), dtype=torch.bool, device=x.device)
        # NaN is in no range.
        found = ~((x >= self.low) & (x <= self.high))
        self.counts = self.counts + found.sum(0)
        return found.any(1)

    def _check(self, x: torch.Tensor) -> None:
        if x.ndim != 2 or (self.low is not None and x.shape[1:] != self.low.shape):
            wanted = "(n, columns)" if self.low is None else f"(n, {len(self.low)})"
            raise FtnPytorchError("SHAPE", f"Guard: inputs have shape {tuple(x.shape)}, expected is {wanted}")

    def state_dict(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "counts": self.counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """FORMAT if it is of another number of columns."""
        low = state["low"]
        if self.low is not None and low is not None and self.low.shape != low.shape:
            raise FtnPytorchError("FORMAT", f"Guard: {len(low)} columns in the file and {len(self.low)} here")
        # Copies, since those of a file come back on the host, and of a live state they may be changed.
        device = "cpu" if self.low is None else self.low.device
        for name in ("low", "high", "counts"):
            setattr(self, name, None if state[name] is None else state[name].to(device, copy=True))
