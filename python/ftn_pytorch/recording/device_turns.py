# SPDX-License-Identifier: MIT
"""CUDA graphs of one device: captured on one stream, into one pool of memory, and launched in turns.

Each stream that graphs are captured on costs a workspace of cuBLAS, and each pool what its graphs need at most. Graphs
that share them must not run at the same time, on whatever streams they are launched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
            log.info(f"graphs of {device} take turns without the plug-in: {failure}")
            plugin = ""
            order = extension.module().device_turns(plugin, device.index)
        _known.setdefault(device, Turns(device, order, plugin))
    return _known[device]


class Turns:
    """``order`` is taken by who captures or launches a graph, until what it computes has been copied."""

    def __init__(self, device: Any, order: Any, plugin: str) -> None:
        self.order = order
        self._plugin = plugin
        """The library that the order is of; empty for the extension."""
        self._device = device
        self._stream: Any = None
        self._pool: Any = None
        self._graphs = 0
        """That have memory in the pool."""

    def record(self, event: Any) -> None:
        event.record(torch.cuda.current_stream(self._device))

    def capture(
        self,
        prepare: Callable[[], Any],
        restore: Callable[[], Any],
        launch: Callable[[], Any],
        generators: Iterable[Any] = (),
    ) -> Any:
        """A graph of ``launch``, and what that returns. ``prepare`` runs before, and ``restore`` after that.

        ``generators`` are those that ``launch`` may draw from, besides torch's own.
        """
        graph = torch.cuda.CUDAGraph()
        has_begun = False
        with torch.cuda.device(self._device):
            if self._stream is None:
                self._stream = torch.cuda.Stream()
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            current = torch.cuda.current_stream()
            torch.cuda.synchronize()  # graphs of other streams
            # not on the stream of captures: torch frees the workspaces of that with each graph that is let go, and
            # those that a capture has made stay in the pool
            prepare()
            restore()
            try:
                # other threads may go on using the device meanwhile
                with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                    has_begun = True
                    made = launch()
            except BaseException:
                if not _has_ended(graph):
                    self._recover(generators, has_begun)
                raise
            finally:
                torch.cuda.set_stream(current)  # which a capture that fails does not do
            # the capture writes numbers for generators on its stream, and the first launch does so on this one
            current.wait_stream(self._stream)
        self._graphs += 1
        return graph, made

    def let_go(self, graph: Any) -> None:
        """Forget a graph. A pool that no graph has memory in cannot be used again."""
        is_here = graph.pool() == self._pool
        graph.reset()
        self._graphs -= is_here
        if self._graphs == 0:
            self._pool = None

    def _recover(self, generators: Iterable[Any], has_begun: bool) -> None:
        """The pool of a capture that has failed, and its generators, take part in it for ever. Later graphs have
        another pool. Generators get a new state, with the same numbers; older graphs would go on with the old one."""
        if has_begun:
            extension.module().end_pool(self._plugin, self._device.index, self._pool)
        self._pool, self._graphs = None, 0
        self.order.failed()
        devices = (each for each in generators if each.device.type == "cuda")
        for generator in (*torch.cuda.default_generators, *devices):
            generator.graphsafe_set_state(generator.clone_state())


def _has_ended(graph: Any) -> bool:
    """False for a graph whose capture torch has not brought to an end."""
    try:
        graph.pool()
    except RuntimeError:
        return False
    return True
