# SPDX-License-Identifier: MIT
"""How far a network looks: found by trying, so that layers need not be known by name."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch

from ..errors import FtnPytorchError

# Cells along each axis of what is tried, by the number of axes: the first try, and the last.
_SIZES = {1: (257, 8193), 2: (65, 513), 3: (17, 129)}
# Of what strides and pooling make together.
_STRIDES = (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 16, 20, 24, 32, 48, 64)
# Of rounding, where the same numbers are added up in another order.
_ROUNDINGS = 1000
_LARGE = 1e6
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


_ON_ALL = "Batch norm in training mode, norms over the domain, pooling over all cells and attention are of this kind"
_ON_PLACE = (
    "Coordinates and positions that a network makes itself are of this kind: give them to it as fields. So are strides "
    f"that make more than {_STRIDES[-1]} together"
)


class Field(NamedTuple):
    """For each axis: how many cells away an output cell looks, and how many cells the output loses at each end.

    stride: cells by which the input may be shifted so that the output is shifted as well, more than 1 if layers have
    strides or pool. The width is a multiple of it.
    """

    width: tuple[int, ...]
    lost: tuple[int, ...]
    stride: int


def halo_width(network: Any, channels: int | None = None, axes: int = 2) -> tuple[int, ...]:
    """How many cells away each output cell of a network looks, along each axis: the width of the halo that it needs.

    network: of tensors (samples, channels, ny, nx), with one output cell for each input cell, or without those whose
    convolutions would reach over the edge. channels: of its input, by default those of its first convolution. axes: 1
    to 3. It is called on a copy, with random numbers, then with some that are replaced or shifted. Where strides and
    pooling are undone by what comes after them, as in a U-Net, the width is a multiple of what they make together.

    ARGUMENT for a network whose outputs depend on all cells, such as batch norm in training mode, on where a cell is,
    such as a network that adds coordinates, or that changes the number of cells.
    """
    return field_of(network, channels, axes).width


def field_of(network: Any, channels: int | None, axes: int) -> Field:
    """See ``halo_width``."""
    if axes not in _CONVOLUTIONS:
        raise FtnPytorchError("ARGUMENT", f"halo_width: axes={axes}, valid are 1, 2 and 3")
    layers = [each for each in network.modules() if isinstance(each, _CONVOLUTIONS[axes])]
    if channels is None:
        if not layers:
            raise FtnPytorchError(
                "ARGUMENT", f"halo_width: the network has no convolution of {axes} axes: give axes=, or give channels="
            )
        channels = layers[0].in_channels
    tried = copy.deepcopy(network)
    for each in tried.modules():
        if isinstance(each, _DROPOUT):
            each.eval()
    size, last = _SIZES[axes]
    why: Exception | None = None
    for stride in _STRIDES:
        # A dilated kernel touches cells far away and none between: it has to fit in.
        reach = max(_reach(tried, axis, axes, stride) for axis in range(axes))
        while True:
            try:
                found = _tried(tried, channels, axes, size + -size % stride, stride) if size > 2 * reach else None
            except Exception as failure:  # of the network, which may need numbers of cells that can be halved
                why = why or failure
                break
            if found is not None:
                return found
            size = 2 * size - 1
            if size > last:
                if isinstance(why, FtnPytorchError):
                    raise why
                raise _refused(f"on cells {last // 2} away or on all cells, so no halo is enough", _ON_ALL)
    assert why is not None
    raise why


def _tried(network: Any, channels: int, axes: int, size: int, stride: int) -> Field | None:
    """None where what is looked at reaches the edge. ARGUMENT if this is not the stride."""
    like = next(iter(network.parameters()), torch.zeros((), device=torch.get_default_device()))
    numbers = torch.Generator().manual_seed(0)
    kind: Any = {"generator": numbers, "dtype": like.dtype, "device": "cpu"}
    half = torch.randn(1, channels, *(size,) * axes, **kind)
    # Both signs, as what compares a cell with a number takes both ways; and no negative ones, for roots and logarithms
    x = torch.cat([half, -half, half.abs()]).to(like.device)
    begin = size // 2 // stride * stride
    block: Any = (..., *(slice(begin, begin + stride),) * axes)
    y = _called(network, x)
    # other cells, and larger numbers, beyond the upper ends
    more = torch.randn(len(x), channels, *(size + 2 * stride,) * axes, **kind)
    beyond = 9 * more.to(like.device)
    inside: Any = (..., *(slice(size),) * axes)
    beyond[inside] = x
    lost = _lost(y, _called(network, beyond), size, stride, axes)
    # large numbers for branches that are taken at temperatures and pressures
    large = _LARGE * x
    touched = _touched(network, x, y, block) | _touched(network, large, _called(network, large), block)
    found = _found(touched, lost, begin, stride)
    if found is None:
        return None
    edges = _edges(network, x, beyond, stride, max(found))
    if edges is None:
        return None
    widths = [max(width, edge + n) for width, edge, n in zip(found, edges, lost)]
    return Field(tuple(width + -width % stride for width in widths), tuple(lost), stride)


def _lost(y: Any, larger: Any, size: int, stride: int, axes: int) -> list[int]:
    """Cells that the output lacks at each end, the same for each number of cells of the input."""
    for axis in range(axes):
        n, m = (each.shape[each.dim() - axes + axis] for each in (y, larger))
        if n > size or (size - n) % 2 or m != n + 2 * stride:
            raise FtnPytorchError(
                "ARGUMENT",
                f"halo_width: {size} cells of the input become {n} along axis {axis} of the output, and "
                f"{size + 2 * stride} become {m}. A network over sub-domains has an output cell for each input cell, "
                "but for the same number of cells at both edges",
            )
    return [(size - n) // 2 for n in y.shape[y.dim() - axes :]]


def _edges(network: Any, x: Any, beyond: Any, stride: int, width: int) -> list[int] | None:
    """How many outputs at the edges depend on where these are, along each axis. ARGUMENT if others depend on a place.

    Outputs of shifted inputs are the shifted outputs otherwise, and those far from the ends of a larger domain are the
    same. It is tried without dropout of any kind. beyond: x with more cells at the upper ends.
    """
    network = copy.deepcopy(network).eval()
    axes = x.dim() - 2
    y = _called(network, x)
    if not torch.equal(y.nan_to_num(), _called(network, x, seed=1).nan_to_num()):
        return [0] * axes  # it draws random numbers, which are others for each cell
    sizes = y.shape[-axes:]
    if min(sizes) // 4 <= width + stride:
        return None
    limit = _ROUNDINGS * torch.finfo(y.dtype).eps * float(y.abs().nan_to_num(posinf=0).max())
    edges = []
    for axis, n in enumerate(sizes):
        dim = axis - axes
        wanted, shifted = y.roll(stride, dim), _called(network, x.roll(stride, dim))
        differs = ~torch.isclose(wanted, shifted, rtol=0, atol=limit, equal_nan=True)
        middle: Any = (
            ...,
            *(slice(None) if m == axis else slice(3 * k // 8, 5 * k // 8 + 1) for m, k in enumerate(sizes)),
        )
        line = differs[middle].movedim(dim, 0).flatten(1).any(1)
        if line[n // 4 : n - n // 4].any():
            raise _refused("on where a cell is: where its input is shifted, they are not shifted alike", _ON_PLACE)
        low, high = (each.nonzero().reshape(-1).tolist() for each in (line[: n // 2], line[n // 2 :]))
        edges.append(max(max(low, default=-1) + 1 - stride, n - n // 2 - min(high, default=n - n // 2), 0))
    inner: Any = (..., *(slice(n // 4, n // 2) for n in sizes))
    if not torch.allclose(y[inner], _called(network, beyond)[inner], rtol=0, atol=limit, equal_nan=True):
        raise _refused("on how many cells there are, or on all of them", _ON_ALL)
    return edges


def _refused(what: str, kinds: str) -> FtnPytorchError:
    return FtnPytorchError("ARGUMENT", f"halo_width: outputs of this network depend {what}. {kinds}")


def _called(network: Any, x: Any, seed: int = 0) -> Any:
    """Outputs, with the same random numbers for a seed, and of the same state: spectral norm goes on in each call."""
    with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []), torch.no_grad():
        torch.manual_seed(seed)
        y = copy.deepcopy(network)(x.clone())
    if not isinstance(y, torch.Tensor) or y.dim() != x.dim():
        made = f"a tensor with {y.dim()} axes" if isinstance(y, torch.Tensor) else f"a {type(y).__name__}"
        raise FtnPytorchError("ARGUMENT", f"halo_width: of a tensor {tuple(x.shape)} this network makes {made}")
    return y if y.is_floating_point() or y.is_complex() else y.double()


def _reach(network: Any, axis: int, axes: int, stride: int) -> int:
    """How far its layers look together, if each is used once; dilated ones may work on cells that were pooled."""
    reach = 0
    for each in network.modules():
        kernel, dilation = getattr(each, "kernel_size", 1), getattr(each, "dilation", 1)
        one, gap = (
            given[axis] if isinstance(given, tuple) and len(given) == axes else given for given in (kernel, dilation)
        )
        if isinstance(one, int) and isinstance(gap, int):
            reach += (one - 1) * gap * (stride if gap > 1 else 1)
    return reach


def _touched(network: Any, x: Any, y: Any, block: Any) -> Any:
    """Which outputs depend on a block of cells. y: those of x."""
    changed = x.clone()
    changed[block] = torch.nan
    return (_called(network, changed) != y) & ~torch.isnan(y)


def _found(touched: Any, lost: list[int], begin: int, stride: int) -> list[int] | None:
    """How far away those outputs are that depend on a block of cells. None where they reach the edge."""
    axes, widths = len(lost), []
    for axis, cut in enumerate(lost):
        line = touched.movedim(axis - axes, 0).flatten(1).any(1)
        places = line.nonzero().reshape(-1).tolist()
        if not places:
            raise FtnPytorchError("ARGUMENT", "halo_width: no output of this network depends on its input")
        if places[0] == 0 or places[-1] == len(line) - 1:
            return None
        widths.append(max(begin + stride - 1 - (places[0] + cut), places[-1] + cut - begin))
    return widths
