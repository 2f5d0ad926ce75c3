# SPDX-License-Identifier: MIT
"""CUDA graphs of one device: captured on one stream, into one pool of memory, and launched in turns.

Each stream that graphs are captured on costs a workspace of cuBLAS, and each pool what its graphs need at most. Graphs
that share them must not run at the same time, on whatever streams they are launched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch

_known: dict[Any, Turns] = {}


def turns_of(device: Any) -> Turns:
    """Those of a device of this process."""
    return _known.setdefault(device, Turns(device))


class Turns:
    """``lock`` is held by who captures or launches a graph, until what it computes has been copied."""

    def __init__(self, device: Any) -> None:
        self.lock = threading.Lock()
        self._device = device
        self._stream: Any = None
        self._pool: Any = None
        self._graphs = 0
        """That have memory in the pool."""
        self._last: int | None = None
        self._done: Any = None
        """Event after the last graph, once there has been a second stream."""

    def begin(self, stream: int) -> None:
        """What is launched from now on, on this stream, comes after the last graph."""
        if stream != self._last and self._last is not None:
            if self._done is None:
                torch.cuda.synchronize(self._device)
                self._done = torch.cuda.Event()
            else:
                torch.cuda.current_stream(self._device).wait_event(self._done)
        self._last = stream

    def end(self) -> None:
        """The graph, and the copies of what it has computed, were launched."""
        if self._done is not None:
            self.record(self._done)

    def record(self, event: Any) -> None:
        event.record(torch.cuda.current_stream(self._device))

    def capture(self, prepare: Callable[[], Any], restore: Callable[[], Any], launch: Callable[[], Any]) -> Any:
        """A graph of ``launch``, and what that returns. ``prepare`` runs before, and ``restore`` after that."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self._device):
            if self._stream is None:
                self._stream = torch.cuda.Stream()
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            current = torch.cuda.current_stream()
            torch.cuda.synchronize()  # graphs of other streams
            with torch.cuda.stream(self._stream):
                prepare()
            current.wait_stream(self._stream)
            restore()
            try:
                # other threads may go on using the device meanwhile
                with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                    made = launch()
            finally:
                torch.cuda.set_stream(current)  # which a capture that fails does not do
        self._graphs += 1
        return graph, made

    def let_go(self, graph: Any) -> None:
        """Forget a graph. A pool that no graph has memory in cannot be used again."""
        is_here = graph.pool() == self._pool
        graph.reset()
        self._graphs -= is_here
        if self._graphs == 0:
            self._pool = None

    def recover(self, generators: Iterable[Any]) -> None:
        """After a capture that has failed: its generators, and its pool, still take part in it."""
        self._pool, self._graphs = None, 0
        devices = (each for each in generators if each.device.type == "cuda")
        for generator in (*torch.cuda.default_generators, *devices):
            generator.graphsafe_set_state(generator.clone_state())
