# SPDX-License-Identifier: MIT
"""Rows drawn in proportion to their priorities, in time that grows with the logarithm of how many there are."""

from __future__ import annotations

import torch

# Children of a node. An operation costs little more on wide nodes than on narrow ones, and each level costs some.
_WIDTH = 32


class Priorities:
    """A tree over ``capacity`` priorities, which are positive, or 0 for rows that are not there.

    All of it is a function of the priorities alone, to the last bit, however it came about: after a restart those rows
    are drawn that the run would have drawn.
    """

    def __init__(self, capacity: int) -> None:
        self._values: list[torch.Tensor] = []
        """Priorities, then the sums of nodes of them, and so on up to one node: (nodes, width) each."""
        count = capacity
        while not self._values or count > 1:
            count = -(-count // _WIDTH)
            self._values.append(torch.zeros(count, _WIDTH, dtype=torch.float64, device="cpu"))
        self._bounds = [level.new_zeros(len(level), _WIDTH + 1) for level in self._values]
        """Where each child begins and ends among the sums of its node; the last one has no end."""
        self._total = torch.zeros((), dtype=torch.float64, device="cpu")
        self.highest = 1.0

    def of(self, rows: torch.Tensor | slice) -> torch.Tensor:
        return self._values[0].view(-1)[rows]

    def total(self) -> torch.Tensor:
        return self._total

    def set(self, rows: torch.Tensor, values: torch.Tensor | float) -> None:
        if not len(rows):
            return
        added = torch.as_tensor(values, dtype=torch.float64, device="cpu")
        for level, bounds in zip(self._values, self._bounds):
            level.view(-1)[rows] = added
            rows = torch.unique(rows // _WIDTH)
            # One after the other, so that the result does not depend on which other nodes are summed.
            ends = level.index_select(0, rows).cumsum(1)
            added = ends[:, -1].clone()
            # With an end, rounding of what is drawn could lead beyond the last row that is there.
            bounds[rows, 1:] = ends.masked_fill_(ends >= added[:, None], torch.inf)
        self._total = added[0]

    def draw(self, n: int, random: torch.Generator) -> torch.Tensor:
        masses = torch.rand(n, 1, dtype=torch.float64, generator=random, device="cpu") * self._total
        rows = torch.zeros(n, dtype=torch.int64, device="cpu")
        for level in reversed(self._bounds):
            bounds = level.index_select(0, rows)
            children = torch.searchsorted(bounds, masses, right=True) - 1
            masses = masses - bounds.gather(1, children)
            rows = rows * _WIDTH + children.squeeze(1)
        return rows
