# SPDX-License-Identifier: MIT
"""Where the cells of a halo come from: the boxes of all ranks, and what is beyond the walls of the domain."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import FtnPytorchError

NAME = "Exchange"
PERIODIC, CLOSED, REFLECTED, REPLICATED = "periodic", "closed", "reflected", "replicated"
FOLDS = {"north fold T": "T", "north fold F": "F"}
_WALLS = (CLOSED, REFLECTED, REPLICATED)
POINTS = ("T", "U", "V", "F")

# Of a cell beyond a closed wall.
_NOWHERE = -1


@dataclass(frozen=True)
class Box:
    """The cells of one rank: global index of the first one along each axis, and how many there are."""

    start: tuple[int, ...]
    shape: tuple[int, ...]

    def overlaps(self, other: Box) -> bool:
        pairs = zip(self.start, self.shape, other.start, other.shape)
        return all(max(a, b) < min(a + n, b + m) for a, n, b, m in pairs)


def boundaries(given: Any, axes: int) -> list[tuple[str, str]]:
    """What is at the lower and at the upper end of each axis. ARGUMENT for names or pairs that make no domain."""
    each = [given] * axes if isinstance(given, str) else list(given)
    if len(each) != axes:
        raise FtnPytorchError("ARGUMENT", f"{NAME}: boundary= has {len(each)} entries for {axes} axes")
    pairs = [(entry, entry) if isinstance(entry, str) else tuple(entry) for entry in each]
    for axis, ends in enumerate(pairs):
        for place, name in enumerate(ends):
            if name in FOLDS and (place, axis) == (1, axes - 2):
                continue
            if len(ends) != 2 or name not in (PERIODIC, *_WALLS):
                raise FtnPytorchError(
                    "ARGUMENT",
                    f"{NAME}: axis {axis} cannot have the boundary {entry_text(ends)}. Valid are "
                    f'"{PERIODIC}", "{CLOSED}", "{REFLECTED}" and "{REPLICATED}", or a pair of them for the lower and '
                    f"the upper end; for the upper end of the last axis but one also {' and '.join(map(repr, FOLDS))}",
                )
        if ends.count(PERIODIC) == 1:
            raise FtnPytorchError("ARGUMENT", f"{NAME}: axis {axis} is periodic at one end only")
    if axes > 1 and pairs[-2][1] in FOLDS and pairs[-1][0] != PERIODIC:
        raise FtnPytorchError("ARGUMENT", f'{NAME}: with a north fold the last axis must be "{PERIODIC}"')
    return pairs


def entry_text(ends: Sequence[str]) -> str:
    return repr(ends[0] if len(set(ends)) == 1 else tuple(ends))


def _flat(indices: Iterable[Any], extents: Iterable[int]) -> Any:
    """The number of a place, or those of places in tensors, the last axis first: the inverse of ``unravel_index``."""
    return functools.reduce(lambda flat, each: flat * each[1] + each[0], zip(indices, extents), 0)


class _Parts:
    """The domain in about as many parts as there are boxes, and which of these touch each part: who is near."""

    def __init__(self, boxes: Sequence[Box], extent: Sequence[int]) -> None:
        counts = [len({box.start[axis] for box in boxes}) for axis in range(len(extent))]
        too_many = max(1.0, math.prod(counts) / (2 * len(boxes))) ** (1 / len(extent))
        self._sizes = [max(1, math.ceil(n * too_many / count)) for n, count in zip(extent, counts)]
        self._counts = [-(-n // size) for n, size in zip(extent, self._sizes)]
        self._ranks: dict[int, list[int]] = {}

    def add(self, rank: int, box: Box) -> set[int]:
        """Ranks that were added before to the parts that a box touches."""
        found: set[int] = set()
        for part in self._touched(box):
            there = self._ranks.setdefault(part, [])
            found.update(there)
            there.append(rank)
        return found

    def near(self, indices: Sequence[Any]) -> list[int]:
        """Ranks among which those are that have some cells, in their order. indices: tensors, one for each axis."""
        parts = _flat([index // size for index, size in zip(indices, self._sizes)], self._counts)
        return sorted({rank for part in parts.unique().tolist() for rank in self._ranks.get(part, [])})

    def _touched(self, box: Box) -> Iterator[int]:
        ranges = [
            range(first // size, (first + n - 1) // size + 1)
            for first, n, size in zip(box.start, box.shape, self._sizes)
        ]
        return (_flat(place, self._counts) for place in itertools.product(*ranges))


class Domain:
    """The whole domain: its extent, its boundaries, and the box of each rank, which may leave cells without a rank.

    FORMAT if two boxes have a cell in common.
    """

    def __init__(
        self, boxes: Sequence[Box], ends: Sequence[tuple[str, str]], extent: Sequence[int] | None, at: str
    ) -> None:
        axes = len(ends)
        if at not in POINTS:
            raise FtnPytorchError("ARGUMENT", f"{NAME}: at={at!r}, valid are {', '.join(POINTS)}")
        last = [max(box.start[axis] + box.shape[axis] for box in boxes) for axis in range(axes)]
        self.boxes, self.ends, self.at = list(boxes), list(ends), at
        self.extent = tuple(last if extent is None else extent)
        self._parts = _Parts(boxes, self.extent)
        for rank, box in enumerate(boxes):
            if any(start < 0 for start in box.start) or any(n > m for n, m in zip(last, self.extent)):
                raise FtnPytorchError(
                    "FORMAT", f"{NAME}: the sub-domain of rank {rank}, {box}, is not inside of {self.extent}"
                )
            for other in sorted(self._parts.add(rank, box)):
                if box.overlaps(boxes[other]):
                    raise FtnPytorchError(
                        "FORMAT",
                        f"{NAME}: ranks {other} and {rank} have cells in common: {boxes[other]} and {box}. Give the "
                        "cells that a rank owns, without halos of the model",
                    )

    def halo(self, rank: int, width: Sequence[int]) -> tuple[Any, Any, Any]:
        """The halo of a rank: its cells, each with the cell of the domain that it copies.

        Three rows of int64 of one length: places in the flat array with the halo, flat places in the domain (-1 where
        there is none), and 1 for cells that came across a fold.
        """
        import torch

        box = self.boxes[rank]
        rows = [self._axis(axis, box, width[axis]) for axis in range(len(self.ends))]
        sizes = [len(row) for row, _ in rows]
        grids = torch.meshgrid(*(row for row, _ in rows), indexing="ij")
        across = torch.zeros(sizes, dtype=torch.bool, device="cpu")
        if len(sizes) > 1:
            across |= rows[-2][1][:, None]
        sources = list(grids)
        if across.any():
            sources[-1] = torch.where(across, self._reversed(sources[-1]), sources[-1])
        place = _flat(sources, self.extent)
        nowhere = torch.stack([source == _NOWHERE for source in sources]).any(0)
        inside = torch.zeros(sizes, dtype=torch.bool, device="cpu")
        inside[tuple(slice(h, h + n) for h, n in zip(width, box.shape))] = True
        outside = (~inside).reshape(-1).nonzero().reshape(-1)
        place[nowhere] = _NOWHERE
        return outside, place.reshape(-1)[outside], across.reshape(-1)[outside].long()

    def require_halos(self, width: Sequence[int]) -> None:
        """What ``halo`` would raise for any of the ranks."""
        for axis in range(len(self.ends)):
            for box in {(box.start[axis], box.shape[axis]): box for box in self.boxes}.values():
                self._axis(axis, box, width[axis])

    def owners(self, places: Any) -> dict[int, Any]:
        """By rank, in their order: which of some flat places of the domain it has, for ranks that have any."""
        import torch

        near = self._parts.near(torch.unravel_index(places[places >= 0], self.extent))
        found = {rank: self.owned(rank, places)[0] for rank in near}
        return {rank: places for rank, places in found.items() if len(places)}

    def owned(self, rank: int, places: Any) -> tuple[Any, Any]:
        """Which of some flat places of the domain a rank has, and where in its own flat array these are."""
        import torch

        box = self.boxes[rank]
        local = [index - first for index, first in zip(torch.unravel_index(places, self.extent), box.start)]
        inside = [(index >= 0) & (index < n) for index, n in zip(local, box.shape)]
        found = torch.stack([places >= 0, *inside]).all(0).nonzero().reshape(-1)
        return found, _flat(local, box.shape)[found]

    def _axis(self, axis: int, box: Box, width: int) -> tuple[Any, Any]:
        """Global index that each padded index of a box copies, and whether it is across a fold."""
        import torch

        n, (lower, upper) = self.extent[axis], self.ends[axis]
        index = torch.arange(box.start[axis] - width, box.start[axis] + box.shape[axis] + width, device="cpu")
        across = torch.zeros(len(index), dtype=torch.bool, device="cpu")
        if lower == PERIODIC:
            return index % n, across
        beyond = index >= n
        if upper in FOLDS:
            across = beyond
            mirror = 2 * (n - 1) if upper.endswith("T") else 2 * n - 1
            folded = mirror - index - (1 if self.at in ("V", "F") else 0)
        else:
            folded = self._wall(upper, 2 * n - 1 - index, n - 1)
        source = torch.where(beyond, folded, index)
        source = torch.where(index < 0, self._wall(lower, -1 - index, 0), source)
        if (source >= n).any() or (source < _NOWHERE).any():
            raise FtnPytorchError(
                "ARGUMENT", f"{NAME}: axis {axis} has {n} cells, and a halo of {width} reaches beyond both of its ends"
            )
        return source, across

    @staticmethod
    def _wall(name: str, mirrored: Any, edge: int) -> Any:
        import torch

        if name == REFLECTED:
            return mirrored
        return torch.full_like(mirrored, _NOWHERE if name == CLOSED else edge)

    def _reversed(self, column: Any) -> Any:
        """Column on the other side of the pole; of the pivot T, column 0 lies on itself."""
        n = self.extent[-1]
        last = n if self.ends[-2][1].endswith("T") else n - 1
        return (last - column - (1 if self.at in ("U", "F") else 0)) % n
