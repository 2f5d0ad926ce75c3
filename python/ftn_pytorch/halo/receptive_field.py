# SPDX-License-Identifier: MIT
"""How far a network looks: found by trying, so that layers need not be known by name."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch

from ..errors import FtnPytorchError

# Cells along each axis of what is tried, by the number of axes: the first try, and the last.
_SIZES = {1: (257, 8193), 2: (65, 1025), 3: (17, 129)}
_CONVOLUTIONS = {
    1: (torch.nn.Conv1d, torch.nn.ConvTranspose1d),
    2: (torch.nn.Conv2d, torch.nn.ConvTranspose2d),
    3: (torch.nn.Conv3d, torch.nn.ConvTranspose3d),
}
_DROPOUT = (
    torch.nn.Dropout,
    torch.nn.Dropout1d,
    torch.nn.Dropout2d,
    torch.nn.Dropout3d,
    torch.nn.AlphaDropout,
    torch.nn.FeatureAlphaDropout,
)


class Field(NamedTuple):
    """For each axis: how many cells away an output cell looks, and how many cells the output loses at each end."""

    width: tuple[int, ...]
    lost: tuple[int, ...]


def halo_width(network: Any, channels: int | None = None, axes: int = 2) -> tuple[int, ...]:
    """How many cells away each output cell of a network looks, along each axis: the width of the halo that it needs.

    network: of tensors (samples, channels, ny, nx), with one output cell for each input cell, or without those whose
    convolutions would reach over the edge. channels: of its input, by default those of its first convolution. axes: 1
    to 3. It is called on a copy, with a cell that is not a number: outputs that are none depend on it. ARGUMENT for a
    network whose outputs depend on all cells, such as batch norm in training mode, or that changes the number of cells.
    """
    return field_of(network, channels, axes).width


def field_of(network: Any, channels: int | None, axes: int) -> Field:
    """See ``halo_width``."""
    if axes not in _CONVOLUTIONS:
        raise FtnPytorchError("ARGUMENT", f"halo_width: axes={axes}, valid are 1, 2 and 3")
    layers = [each for each in network.modules() if isinstance(each, _CONVOLUTIONS[axes])]
    if channels is None:
        if not layers:
            raise FtnPytorchError("ARGUMENT", "halo_width: the network has no convolution: give channels=")
        channels = layers[0].in_channels
    tried = copy.deepcopy(network)
    for each in tried.modules():
        if isinstance(each, _DROPOUT):
            each.eval()
    like = next(iter(tried.parameters()), torch.zeros(()))
    # A dilated kernel touches cells far away and none between: it has to fit in.
    reach = max((_reach(tried, axis, axes) for axis in range(axes)), default=0)
    size, last = _SIZES[axes]
    while size <= last:
        if size > 2 * reach:
            middle: Any = (..., *(size // 2,) * axes)
            x = torch.zeros(1, channels, *(size,) * axes, dtype=like.dtype, device=like.device)
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                clear = torch.isnan(tried(x))
                x[middle] = torch.nan
                touched = torch.isnan(tried(x)) & ~clear
            found = _found(touched, size, axes)
            if found is not None:
                return found
        size = 2 * size - 1
    raise FtnPytorchError(
        "ARGUMENT",
        f"halo_width: outputs of this network depend on cells {last // 2} away or on all cells, so no halo is enough. "
        "Batch norm in training mode, norms over the domain, pooling over all cells and attention are of this kind",
    )


def _reach(network: Any, axis: int, axes: int) -> int:
    """How far its layers look together, if each is used once."""
    reach = 0
    for each in network.modules():
        kernel, dilation = getattr(each, "kernel_size", 1), getattr(each, "dilation", 1)
        one, gap = (
            given[axis] if isinstance(given, tuple) and len(given) == axes else given for given in (kernel, dilation)
        )
        if isinstance(one, int) and isinstance(gap, int):
            reach += (one - 1) * gap
    return reach


def _found(touched: Any, size: int, axes: int) -> Field | None:
    """None where what depends on the cell in the middle reaches the edge."""
    widths, lost = [], []
    for axis in range(axes):
        n = touched.shape[touched.dim() - axes + axis]
        if n > size or (size - n) % 2:
            raise FtnPytorchError(
                "ARGUMENT",
                f"halo_width: {size} cells of the input become {n} along axis {axis} of the output. A network over "
                "sub-domains has an output cell for each input cell, but for the same number of cells at both edges",
            )
        cut = (size - n) // 2
        others = [i for i in range(touched.dim()) if i != touched.dim() - axes + axis]
        places = touched.any(dim=others).nonzero().reshape(-1) if others else touched.nonzero().reshape(-1)
        if not len(places):
            raise FtnPytorchError("ARGUMENT", "halo_width: no output of this network depends on its input")
        low, high = int(places.min()), int(places.max())
        if (low == 0 and cut == 0) or (high == n - 1 and cut == 0):
            return None
        if n > 1 and low == 0 and high == n - 1:
            return None
        widths.append(max(size // 2 - (low + cut), high + cut - size // 2))
        lost.append(cut)
    return Field(tuple(widths), tuple(lost))
