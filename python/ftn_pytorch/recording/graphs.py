# SPDX-License-Identifier: MIT
"""Recordings whose tensors are on a GPU, as CUDA graphs: one launch in place of one for each operator.

A graph works on the addresses that it was captured with. So each input has a buffer, on the device, or pinned where the
array is in host memory, and results are copied out of the graph's memory before the next call overwrites it. A number
of an optimizer becomes part of the graph; where one changes, a new graph is captured.
"""

from __future__ import annotations

import atexit
import weakref
from typing import Any

import torch

from .. import observe
from . import checking
from .build import Tape

_CAPTURES = 8
# Above that, one thread takes longer to copy into a buffer than the driver takes with pages that are not locked.
_STAGED_BYTES = 8 << 20
_alive: weakref.WeakSet[GraphReplay] = weakref.WeakSet()


def concerns(tape: Tape, inputs: list[Any]) -> bool:
    """True where everything is computed on a GPU, and what comes from the host is small enough to be staged."""
    tensors = [tensor for (tensor,) in tape.outside] + inputs
    if sum(tensor.nbytes for tensor in inputs if tensor.is_cpu) > _STAGED_BYTES:
        return False
    return any(tensor.is_cuda for tensor in tensors) and not any(operation.on_host for operation in tape.steps)


class GraphReplay:
    """Runs like ``Replay`` of the extension, through a graph."""

    def __init__(self, replay: Any, tape: Tape, name: str) -> None:
        self._replay, self._tape, self._name = replay, tape, name
        self._graph: Any = None
        self._numbers: list[float] | None = None
        self._captures = 0
        self._buffers: list[Any] = []
        self._staged: Any = None
        """Event after which buffers in host memory may be written again."""
        self._results: tuple = ()
        self._gradients: tuple = ()
        if not _alive:
            atexit.register(reset_all)
        _alive.add(self)

    def run(self, args: tuple, named: dict[str, Any]) -> Any:
        """A tuple of tensors, or NotImplemented."""
        if self._captures > _CAPTURES:
            return self._replay.run(args, named)
        given = self._replay.given(args, named)
        if given is NotImplemented:
            return given
        inputs, numbers = given
        if self._graph is None or numbers != self._numbers:
            self._capture(inputs, numbers)
            if self._graph is None:
                return self._replay.run(args, named)
        if self._staged is not None:
            self._staged.synchronize()
        for buffer, tensor in zip(self._buffers, inputs):
            buffer.copy_(tensor)
        self._graph.replay()
        if self._staged is not None:
            self._staged.record()
        for place in self._tape.written_inputs:
            inputs[place].copy_(self._buffers[place])
        self._replay.settle(inputs, self._gradients)
        return tuple(result.clone() for result in self._results)

    def why(self) -> Any:
        return self._replay.why()

    @property
    def runs(self) -> int:
        return self._replay.runs

    def reset(self) -> None:
        """Let the graph go; the next call captures another one."""
        if self._graph is not None:
            self._graph.reset()
            self._graph = None

    def _capture(self, inputs: list[Any], numbers: list[float]) -> None:
        self.reset()
        self._captures += 1
        if self._captures > _CAPTURES:
            observe.log(
                observe.INFO,
                f"{self._name}: no CUDA graph, because numbers of its optimizer change too often; give the learning "
                "rate as a tensor on the device",
            )
            return
        if not self._buffers:
            self._buffers = [torch.empty_like(each, pin_memory=each.is_cpu) for each in inputs]
            if any(each.is_cpu for each in inputs):
                self._staged = torch.cuda.Event()
        for buffer, tensor in zip(self._buffers, inputs):
            buffer.copy_(tensor)
        before = checking.State(self._tape, self._buffers)
        device = next(each.device for each in (*(t for (t,) in self._tape.outside), *self._buffers) if each.is_cuda)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.device(device):
                aside = torch.cuda.Stream()
                aside.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(aside):
                    # libraries that torch calls prepare themselves in their first calls, which cannot be captured
                    self._replay.launch(self._buffers, numbers)
                torch.cuda.current_stream().wait_stream(aside)
                before.restore()
                # other threads may go on using the device meanwhile
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    self._results, self._gradients = self._replay.launch(self._buffers, numbers)
        except RuntimeError as failure:
            self._captures = _CAPTURES + 1
            observe.log(observe.INFO, f"{self._name}: no CUDA graph, because {str(failure).splitlines()[0]}")
            return
        self._graph, self._numbers = graph, numbers


def reset_all() -> None:
    """At exit: process groups and the context of the device cannot go before the graphs."""
    for replay in list(_alive):
        replay.reset()
