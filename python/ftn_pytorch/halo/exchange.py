# SPDX-License-Identifier: MIT
"""The exchange of halos: what a script calls."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ..errors import FtnPytorchError
from ..ranks import neighbours
from ..system import thread_recorder
from . import domain
from .domain import NAME, Box, Domain


class Exchange:
    """Halos around the sub-domains of all ranks, as if each tensor was cut out of the whole domain.

    All ranks make it, and all of them call it: over the communicator of the script (``load(..., communicator=)``), by
    MPI for tensors in host memory, or by the process group of torch.distributed where there was one before, and for
    tensors on devices. In one process without both it is for a domain that nobody else has a part of.

    shape: cells of this rank along the last axes of its tensors, such as (ny, nx), without halos of the model. Other
    ranks may have other ones. width: of the halo, for all axes or for each. It may be larger than a sub-domain.
    grid: ranks along each axis, (py, px), where rank = iy * px + ix. Or start: global index of the first cell of this
    rank along each axis, from 0 on, for any other layout; cells that no rank has, such as land, are zero.
    extent: of the whole domain, where no rank has its last cells.
    boundary: for each axis, or for all: "periodic", "closed" (zeros), "reflected" (the cell on the other side of the
    wall: c b a | a b c), "replicated" (the last cell: a a a | a b c), or a pair of these for lower and upper end. The
    upper end of the last axis but one may be "north fold T" or "north fold F": the grid is folded on itself there,
    about a row of T points or a row of F points, as in NEMO. at: which points of a staggered grid the tensors are given
    at, "T", "U", "V" or "F"; it matters across a fold only.

    ARGUMENT for what is described wrongly, FORMAT where the sub-domains of the ranks do not fit; on all ranks.
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        width: int | Sequence[int],
        *,
        grid: int | Sequence[int] | None = None,
        start: int | Sequence[int] | None = None,
        extent: int | Sequence[int] | None = None,
        boundary: Any = domain.CLOSED,
        at: str = "T",
    ) -> None:
        self.shape = tuple(_wholes(shape))
        grid, start, extent = (None if given is None else _wholes(given) for given in (grid, start, extent))
        axes = len(self.shape)
        self.width = tuple(map(_whole, width if isinstance(width, Iterable) else [width] * axes))
        ours = neighbours.usable_communicator(NAME)
        mine = {"shape": self.shape, "width": self.width, "start": start, "grid": grid, "extent": extent, "at": at}
        mine["boundary"] = boundary
        everyone = [json.loads(text) for text in neighbours.texts_of_all(ours, json.dumps(mine, default=list), NAME)]
        rank = neighbours.own_rank(ours)
        boxes = _boxes(everyone)
        self._domain = Domain(boxes, domain.boundaries(boundary, axes), extent, at)
        self._padded = tuple(n + 2 * h for n, h in zip(self.shape, self.width))
        places, sources, across = self._domain.halo(rank, self.width)
        self._domain.require_halos(self.width)
        owners = self._domain.owners(sources)
        wanted = neighbours.texts_of_all(ours, json.dumps(list(owners)), NAME)
        sent, indices = {}, []
        for other in (other for other, text in enumerate(wanted) if rank in json.loads(text)):
            _, own = self._domain.owned(rank, sources if other == rank else self._domain.halo(other, self.width)[1])
            sent[other] = len(own)
            indices.append(own)
        received, order = {other: len(found) for other, found in owners.items()}, owners.values()
        empty = torch.zeros(0, dtype=torch.int64, device="cpu")
        self._index = torch.cat([*indices, empty])
        chosen = torch.cat([*order, empty])
        self._places, self._across = places[chosen], across[chosen].bool()
        for other in sent.keys() | received.keys():
            sent.setdefault(other, 0)
            received.setdefault(other, 0)
        self._neighbours = neighbours.Neighbours(ours, sent, received, NAME)

    def __call__(self, *fields: Any, sign: float = 1) -> Any:
        """The fields with halos: (..., ny, nx) becomes (..., ny + 2h, nx + 2h). One field, or a tuple of several.

        Several fields travel in one message to each neighbour. They may differ in their leading axes, which must be
        those of the other ranks, and share type and device. sign: of what comes across a fold, -1 for components of
        vectors. Gradients flow through it, also those of gradients. SHAPE for another sub-domain, DTYPE for fields of
        several types or devices, and for a sign that their type does not have.
        """
        if not fields:
            raise FtnPytorchError("ARGUMENT", f"{NAME} has been given no field")
        axes = len(self.shape)
        for field in fields:
            if not isinstance(field, torch.Tensor):
                raise FtnPytorchError(
                    "ARGUMENT", f"{NAME}: a field is a {type(field).__name__}, and must be a tensor: torch.as_tensor"
                )
            if tuple(field.shape[field.dim() - axes :]) != self.shape or field.dim() < axes:
                raise FtnPytorchError(
                    "SHAPE", f"{NAME} is for sub-domains of {self.shape}, and a field is {tuple(field.shape)}"
                )
            if (field.dtype, field.device) != (fields[0].dtype, fields[0].device):
                raise FtnPytorchError(
                    "DTYPE",
                    f"{NAME}: the fields of one call need one type and device, and there are {fields[0].dtype} on "
                    f"{fields[0].device} and {field.dtype} on {field.device}",
                )
        dtype = fields[0].dtype
        if sign != 1 and (not dtype.is_signed or torch.result_type(fields[0], sign) != dtype):
            raise FtnPytorchError("DTYPE", f"{NAME}: there is no {sign} times a number of {dtype} in that type")
        self._move(fields[0].device)
        thread_recorder.keep(self._index, self._places, self._across)
        counts = [math.prod(field.shape[: field.dim() - axes]) for field in fields]
        flat = [field.reshape(count, math.prod(self.shape)) for field, count in zip(fields, counts)]
        rows = torch.cat(flat) if len(flat) > 1 else flat[0]
        # For few cells this takes a third of the time of index_select on the transposed rows, for many about as long.
        sent = rows.index_select(1, self._index).t().contiguous()
        received = _Rows.apply(sent, self._neighbours, False).t()
        if sign != 1:
            received = torch.where(self._across, received * sign, received)
        pads = [each for h in reversed(self.width) for each in (h, h)]
        whole = torch.nn.functional.pad(rows.reshape(len(rows), *self.shape), pads)
        whole = whole.reshape(len(rows), math.prod(self._padded))
        # in place: pad has made memory that nobody else has
        whole = whole.index_copy_(1, self._places, received)
        results = tuple(
            part.reshape(*field.shape[: field.dim() - axes], *self._padded)
            for part, field in zip(whole.split(counts) if len(fields) > 1 else [whole], fields)
        )
        return results if len(results) > 1 else results[0]

    def inner(self, padded: Any) -> Any:
        """A field without its halo, a view: (..., ny + 2h, nx + 2h) becomes (..., ny, nx). SHAPE for other fields."""
        if tuple(padded.shape[-len(self.shape) :]) != self._padded:
            raise FtnPytorchError(
                "SHAPE", f"{NAME}: a field with its halo is {self._padded} here, and this is {tuple(padded.shape)}"
            )
        return padded[(..., *(slice(h, h + n) for h, n in zip(self.width, self.shape)))]

    def is_aligned(self, stride: int) -> bool:
        """Whether the sub-domains of all ranks begin at multiples of so many cells, and have multiples with halos."""
        return all(
            start % stride == 0 and h % stride == 0 and n % stride == 0
            for box in self._domain.boxes
            for start, n, h in zip(box.start, box.shape, self.width)
        )

    def costs(self, itemsize: int = 4, fields: int = 1) -> tuple[int, int]:
        """Messages that this rank sends in a call, and their bytes, for so many fields of numbers of ``itemsize``."""
        messages, cells = self._neighbours.messages()
        return messages, cells * itemsize * fields

    def _move(self, device: Any) -> None:
        if self._index.device != device:
            self._index, self._places = self._index.to(device), self._places.to(device)
            self._across = self._across.to(device)


class _Rows(torch.autograd.Function):
    """Gradients go back to the ranks that sent the rows."""

    @staticmethod
    def forward(ctx: Any, rows: Any, ways: neighbours.Neighbours, back: bool) -> Any:
        ctx.ways, ctx.back = ways, back
        return ways.exchange(rows, back)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:  # type: ignore[override]
        return _Rows.apply(gradient, ctx.ways, not ctx.back), None, None


def _whole(number: Any) -> int:
    if int(number) != number:
        raise FtnPytorchError("ARGUMENT", f"{NAME}: {number} is no number of cells or ranks")
    return int(number)


def _wholes(given: Any) -> list[int]:
    """A number for each axis; one alone for a single axis."""
    return [_whole(each) for each in (given if isinstance(given, Iterable) else [given])]


def _boxes(everyone: Sequence[dict[str, Any]]) -> list[Box]:
    """The box of each rank. FORMAT where the ranks describe different domains."""
    first = everyone[0]
    for rank, each in enumerate(everyone):
        for name in ("width", "grid", "extent", "at", "boundary"):
            if each[name] != first[name]:
                raise FtnPytorchError(
                    "FORMAT", f"{NAME}: rank {rank} has {name}={each[name]}, and rank 0 {name}={first[name]}"
                )
        if (each["start"] is None) != (first["start"] is None) or len(each["shape"]) != len(first["shape"]):
            raise FtnPytorchError("FORMAT", f"{NAME}: ranks 0 and {rank} describe their sub-domains in different ways")
    axes = len(first["shape"])
    if not axes or len(first["width"]) != axes or any(h < 0 for h in first["width"]):
        raise FtnPytorchError("ARGUMENT", f"{NAME}: shape {first['shape']} and width {first['width']} do not fit")
    if any(n < 1 for each in everyone for n in each["shape"]):
        raise FtnPytorchError("ARGUMENT", f"{NAME}: a rank without cells takes no part; shape= needs a cell at least")
    for name in ("extent", "grid"):
        if first[name] is not None and len(first[name]) != axes:
            raise FtnPytorchError("ARGUMENT", f"{NAME}: {name} {first[name]} is not for {axes} axes")
    if any(each["start"] is not None and len(each["start"]) != axes for each in everyone):
        raise FtnPytorchError("ARGUMENT", f"{NAME}: start= is not for {axes} axes")
    if first["start"] is not None:
        if first["grid"] is not None:
            raise FtnPytorchError("ARGUMENT", f"{NAME}: give grid= or start=, not both")
        return [Box(tuple(each["start"]), tuple(each["shape"])) for each in everyone]
    grid = first["grid"] or ([1] * axes if len(everyone) == 1 else None)
    if grid is None or math.prod(grid) != len(everyone):
        raise FtnPytorchError(
            "ARGUMENT", f"{NAME}: {len(everyone)} ranks need grid=, the ranks along each axis, or start=; grid={grid}"
        )
    return _tiles(everyone, grid)


def _tiles(everyone: Sequence[dict[str, Any]], grid: Sequence[int]) -> list[Box]:
    places = list(itertools.product(*map(range, grid)))
    sizes: list[dict[int, int]] = [{} for _ in grid]
    for rank, (place, each) in enumerate(zip(places, everyone)):
        for axis, index in enumerate(place):
            n = sizes[axis].setdefault(index, each["shape"][axis])
            if n != each["shape"][axis]:
                raise FtnPytorchError(
                    "FORMAT",
                    f"{NAME}: rank {rank} has {each['shape'][axis]} cells along axis {axis}, and others in its row "
                    f"of the grid {tuple(grid)} have {n}. Ranks of MPI_Cart_create have this order; or give start=",
                )
    starts = [[0, *itertools.accumulate(row[i] for i in range(len(row)))] for row in sizes]
    return [
        Box(tuple(starts[axis][index] for axis, index in enumerate(place)), tuple(each["shape"]))
        for place, each in zip(places, everyone)
    ]
