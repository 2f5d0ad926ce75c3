# SPDX-License-Identifier: MIT
"""The average of the weights of a network over its training."""

from __future__ import annotations

import torch
from torch.optim import swa_utils

from ..errors import FtnPytorchError


class Average(swa_utils.AveragedModel):
    """A copy of a network whose weights are an average of those that it has had; call it to predict.

    ``rho``: ``update`` makes of the average ``rho * average + (1 - rho) * network``: the exponential moving average,
    and Polyak's update of target networks; 0 takes the weights as they are. It begins with the weights of now. None:
    the mean of the weights of all updates. ``use_buffers``: buffers are averaged as well, otherwise copied.

    This is torch's ``AveragedModel``, which knows its network and requires no gradients. ``module`` is the network with
    the averaged weights, such as for an export. ARGUMENT if ``rho`` is not in [0, 1).
    """

    def __init__(self, network: torch.nn.Module, rho: float | None = None, *, use_buffers: bool = False) -> None:
        if rho is not None and not 0 <= rho < 1:
            raise FtnPytorchError("ARGUMENT", f"Average: rho is {rho}, it must be at least 0 and less than 1, or None")
        if any(map(torch.nn.parameter.is_lazy, network.parameters())):
            raise FtnPytorchError(
                "ARGUMENT", "Average: the network has no shapes before its first forward: call it once with a sample"
            )
        forgetting = None if rho is None else swa_utils.get_ema_multi_avg_fn(rho)
        super().__init__(network, multi_avg_fn=forgetting, use_buffers=use_buffers)
        self.requires_grad_(False)
        # In a tuple, as it is no part of this module.
        self._network = (network,)
        if rho is not None:
            # Otherwise the first update would take the weights as they are.
            self.n_averaged.fill_(1)

    def update(self) -> None:
        """Take the weights that the network has now into the average. A recorded function may call it."""
        self.update_parameters(self._network[0])
