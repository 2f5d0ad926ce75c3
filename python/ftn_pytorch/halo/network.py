# SPDX-License-Identifier: MIT
"""A network of local layers over the sub-domains of all ranks."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import FtnPytorchError
from . import receptive_field
from .exchange import Exchange


class OverSubdomains(torch.nn.Module):
    """A CNN over sub-domains that is the CNN over the whole domain: one exchange of halos, then the network as it is.

    Outputs are those of the network over the whole domain with a halo, by the rule of ``boundary``, around it. This
    takes the place of the padding of its layers. Gradients with respect to inputs are complete. Those of the parameters
    are the part of this rank: their sum over the ranks is the gradient of a loss that is a sum over all cells. So use
    ``average_gradients(net, samples=cells)`` where the loss of a rank is the mean over its own cells.

    network: of tensors (samples, channels, ny, nx), see ``halo_width``. exchange: with the width that it needs, or a
    larger one. The parameters have their names in the network, behind ``network.``.

    Where layers have strides or pool, the sub-domains of all ranks must begin at multiples of what these make together,
    and have multiples of it as numbers of cells, so that all ranks pool the same cells. ARGUMENT if they do not, or if
    the halo is too narrow.
    """

    def __init__(self, network: torch.nn.Module, exchange: Exchange, channels: int | None = None) -> None:
        super().__init__()
        self.network = network
        self.exchange = exchange
        self._channels = channels
        # for which of its layers were in training when it was looked at
        self._cuts: dict[tuple[bool, ...], list[int]] = {}
        self._cut()

    def _cut(self) -> list[int]:
        """What is cut off at each end, along each axis. A layer such as batch norm may look farther in training."""
        modes = tuple(layer.training for layer in self.network.modules())
        if modes not in self._cuts:
            self._cuts[modes] = self._looked_at()
        return self._cuts[modes]

    def _looked_at(self) -> list[int]:
        width = self.exchange.width
        field = receptive_field.field_of(self.network, self._channels, len(self.exchange.shape))
        if any(h < n for h, n in zip(width, field.width)):
            raise FtnPytorchError(
                "ARGUMENT",
                f"OverSubdomains: the network looks {field.width} cells away, and the halo is {width} wide: make the "
                "Exchange with width=halo_width(network)",
            )
        if not self.exchange.is_aligned(field.stride):
            raise FtnPytorchError(
                "ARGUMENT",
                f"OverSubdomains: the strides of the network make {field.stride} together, so the sub-domains of all "
                f"ranks must begin at multiples of {field.stride} cells, and their numbers of cells and the halo be "
                f"multiples of it; the halo is {width} wide",
            )
        return [h - n for h, n in zip(width, field.lost)]

    def forward(self, x: Any) -> Any:
        """(samples, channels, ny, nx) of this rank; all ranks call it with the same number of samples."""
        cuts = self._cut()
        y = self.network(self.exchange(x))
        return y[(..., *(slice(cut, cut + n) for cut, n in zip(cuts, self.exchange.shape)))]
