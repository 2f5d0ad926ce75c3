# SPDX-License-Identifier: MIT
"""Rows drawn in proportion to their priorities, in time that grows with the logarithm of how many there are."""

from __future__ import annotations

import torch


class Priorities:
    """A binary tree of sums over ``capacity`` priorities, which are positive, or 0 for rows that are not there."""

    def __init__(self, capacity: int) -> None:
        self._leaves = 1 << max(capacity - 1, 1).bit_length()
        self._sums = torch.zeros(2 * self._leaves, dtype=torch.float64)
        self.highest = 1.0

    def of(self, rows: torch.Tensor | slice) -> torch.Tensor:
        return self._sums[self._leaves :][rows]

    def total(self) -> torch.Tensor:
        return self._sums[1]

    def set(self, rows: torch.Tensor, values: torch.Tensor | float) -> None:
        nodes = rows + self._leaves
        self._sums[nodes] = torch.as_tensor(values, dtype=torch.float64)
        for _ in range(self._leaves.bit_length() - 1):
            nodes = nodes // 2
            self._sums[nodes] = self._sums[2 * nodes] + self._sums[2 * nodes + 1]

    def draw(self, n: int, random: torch.Generator) -> torch.Tensor:
        masses = torch.rand(n, dtype=torch.float64, generator=random) * self.total()
        nodes = torch.ones(n, dtype=torch.int64)
        for _ in range(self._leaves.bit_length() - 1):
            left = self._sums[2 * nodes]
            # Rounding must not lead to rows that are not there.
            right = (masses >= left) & (self._sums[2 * nodes + 1] > 0)
            masses = masses - torch.where(right, left, 0.0)
            nodes = 2 * nodes + right
        return nodes - self._leaves
