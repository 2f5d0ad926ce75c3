# SPDX-License-Identifier: MIT
"""CUDA graphs of one device: captured by the plug-in, which owns what the device has once, and launched in turns.

Graphs share a stream, on which they are captured, and a pool of memory. So they must not run at the same time, on
whatever streams they are launched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..system import log
from . import extension

_known: dict[Any, Turns] = {}


def turns_of(device: Any) -> Turns:
    """Those of a device of this process."""
    if device not in _known:
        plugin = extension.plugin()
        try:
            order = extension.module().device_turns(plugin, device.index)
        except ImportError as failure:
            # files cannot run in this process, so nobody else takes turns
            log.info(f"there are no graphs of {device} without the plug-in: {failure}")
            plugin = ""
            order = extension.module().device_turns(plugin, device.index)
        _known.setdefault(device, Turns(device, order, plugin))
    return _known[device]


class Turns:
    """``order`` is taken by who captures or launches a graph, until what it computes has been copied."""

    def __init__(self, device: Any, order: Any, plugin: str) -> None:
        self.order = order
        self._plugin = plugin
        """The library that captures graphs; empty where there is none."""
        self._device = device

    def record(self, event: Any) -> None:
        event.record(torch.cuda.current_stream(self._device))

    def event(self) -> Any:
        """After all that the current stream has been given."""
        made = torch.cuda.Event()
        self.record(made)
        return made

    def capture(
        self, prepare: Callable[[], Any], restore: Callable[[], Any], launch: Callable[[], Any], draws: bool
    ) -> Any:
        """A graph of ``launch``, and what that returns. ``prepare`` runs before, and ``restore`` after that.

        ``draws``: random numbers. RuntimeError where it cannot be captured.
        """
        if not self._plugin:
            raise RuntimeError("the plug-in that captures graphs is missing")
        with torch.cuda.device(self._device):
            torch.cuda.synchronize()  # graphs of other streams
            # not on the stream of captures: torch frees the workspaces of that with each graph that is let go, and
            # those that a capture has made stay in the pool
            prepare()
            restore()
            return extension.module().capture(self._plugin, self._device.index, draws, launch)
