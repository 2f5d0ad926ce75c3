# SPDX-License-Identifier: MIT
"""Recordings whose tensors are on a GPU, as CUDA graphs: one launch in place of one for each operator.

A graph works on the addresses that it was captured with. Arrays on the device are read there as long as their
addresses are those of the first call. Others have buffers, on the device, or pinned where the array is in host memory.
Results are copied out of the graph's memory, which the next call overwrites. A number of an optimizer becomes part of
the graph; where one changes, a new graph is captured.
"""

from __future__ import annotations

import atexit
import weakref
from dataclasses import dataclass
from typing import Any

import torch

from ..host import log
from . import comparison
from .recorded_call import Tape

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


@dataclass
class _Captured:
    """A graph, and the memory that it works on."""

    graph: Any
    numbers: list[float]
    buffers: list[Any]
    """None for inputs that are read where they are."""
    results: tuple
    gradients: tuple


class GraphReplay:
    """Runs like ``Replay`` of the extension, through graphs: one for arrays on the device at the addresses of the first
    call, and one with buffers for any others."""

    def __init__(self, replay: Any, tape: Tape, name: str, trial: Any = None) -> None:
        """``trial``: what runs before the capture in place of a recording that asks other ranks."""
        self._replay, self._tape, self._name = replay, tape, name
        self._trial = replay if trial is None else trial
        self._graphs: dict[Any, _Captured] = {}
        self._addresses: tuple = ()
        self._staged: Any = None
        """Event after which buffers in host memory may be written again."""
        self.captures = 0
        if not _alive:
            atexit.register(reset_all)
        _alive.add(self)

    def run(self, args: tuple, named: dict[str, Any]) -> Any:
        """A tuple of tensors, or NotImplemented."""
        if self.captures > _CAPTURES:
            return self._replay.run(args, named)
        given = self._replay.given(args, named)
        if given is NotImplemented:
            return given
        inputs, numbers = given
        addresses = tuple([tensor.data_ptr() if tensor.is_cuda else 0 for tensor in inputs])
        if not self._graphs:
            self._addresses = addresses
        place = addresses if addresses == self._addresses else None
        captured = self._graphs.get(place)
        if captured is None or captured.numbers != numbers:
            captured = self._capture(place, inputs, numbers)
            if captured is None:
                return self._replay.run(args, named)
        self._fill(captured.buffers, inputs)
        captured.graph.replay()
        if self._staged is not None:
            self._staged.record()
        for written in self._tape.written_inputs:
            if captured.buffers[written] is not None:
                inputs[written].copy_(captured.buffers[written])
        self._replay.settle(inputs, captured.gradients)
        return tuple([result.clone() for result in captured.results])

    def why(self) -> Any:
        return self._replay.why()

    @property
    def runs(self) -> int:
        return self._replay.runs

    def reset(self) -> None:
        """Let the graphs go; the next call captures another one."""
        while self._graphs:
            self._graphs.popitem()[1].graph.reset()

    def _fill(self, buffers: list[Any], inputs: list[Any]) -> None:
        if self._staged is not None:
            self._staged.synchronize()
        for buffer, tensor in zip(buffers, inputs):
            if buffer is not None:
                buffer.copy_(tensor)

    def _capture(self, place: Any, inputs: list[Any], numbers: list[float]) -> _Captured | None:
        if place in self._graphs:
            self._graphs.pop(place).graph.reset()
        self.captures += 1
        if self.captures > _CAPTURES:
            self._do_without("numbers of its optimizer change too often; give the learning rate as a tensor")
            return None
        stays = [tensor.is_cuda and place is not None for tensor in inputs]
        buffers = [None if here else torch.empty_like(t, pin_memory=t.is_cpu) for here, t in zip(stays, inputs)]
        if self._staged is None and any(tensor.is_cpu for tensor in inputs):
            self._staged = torch.cuda.Event()
        self._fill(buffers, inputs)
        used = [tensor if buffer is None else buffer for buffer, tensor in zip(buffers, inputs)]
        before = comparison.State(self._tape, used)
        device = next(each.device for each in (*(t for (t,) in self._tape.outside), *used) if each.is_cuda)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.device(device):
                aside = torch.cuda.Stream()
                aside.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(aside):
                    # libraries that torch calls prepare themselves in their first calls, which cannot be captured
                    self._trial.launch(used, numbers)
                torch.cuda.current_stream().wait_stream(aside)
                before.restore()
                # other threads may go on using the device meanwhile
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    results, gradients = self._replay.launch(used, numbers)
        except RuntimeError as failure:
            self._do_without(str(failure).splitlines()[0])
            return None
        self._graphs[place] = _Captured(graph, numbers, buffers, results, gradients)
        return self._graphs[place]

    def _do_without(self, why: str) -> None:
        self.reset()
        self.captures = _CAPTURES + 1
        log.info(f"{self._name}: no CUDA graph, because {why}")


def reset_all() -> None:
    """At exit: process groups and the context of the device cannot go before the graphs."""
    for replay in list(_alive):
        replay.reset()
