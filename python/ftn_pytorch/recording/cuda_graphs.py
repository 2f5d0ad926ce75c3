# SPDX-License-Identifier: MIT
"""Recordings whose tensors are on a GPU, as CUDA graphs: one launch in place of one for each operator.

A graph works on the addresses that it was captured with. Arrays on the device are read there as long as their
addresses are those of the first call. Others have buffers, on the device, or pinned where the array is in host memory.
Results are copied out of the graph's memory, which the next call overwrites. A number of an optimizer becomes part of
the graph, and so do the settings of kernels; where one changes, a new graph is captured. What a graph cannot do runs as
the operators one by one.

All graphs of a device share a stream, on which they are captured, and a pool of memory, so each writes over what the
others have computed. They must not run at the same time, on whatever streams they are launched. The plug-in captures
them, and owns what the device has once.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..ranks import process_group
from ..system import extension, log, other_threads, private_names
from . import comparison
from .collectives import asks_ranks
from .memory_spans import Overlaps, has_gaps, like
from .operations import is_move
from .recorder import ALONE
from .tape import Tape

_CAPTURES = 8
_GRAPHS = 8
# Above that, one thread takes longer to copy into a buffer than the driver takes with pages that are not locked.
_STAGED_BYTES = 8 << 20
# cuBLAS looks that far at how addresses are aligned.
_ALIGNED = 256
_WAITS = (
    f"there are other threads, because it draws random numbers: torch {torch.__version__} would fail in threads that "
    "draw during a capture, from 2.12 on it does not"
)
_alive: weakref.WeakSet[GraphReplay] = weakref.WeakSet()
_known: dict[Any, Turns] = {}


def device_of(tape: Tape, inputs: list[Any]) -> Any:
    """The GPU that a recording works on, None where there is none."""
    return next((each.device for each in (*(tensor for _, tensor in tape.constants), *inputs) if each.is_cuda), None)


def obstacle(tape: Tape, inputs: list[Any], device: Any) -> str:
    """Why a recording cannot become a graph; empty if it can."""
    if sum(tensor.nbytes for tensor in inputs if tensor.is_cpu) > _STAGED_BYTES:
        return f"its arrays of the host are larger than {_STAGED_BYTES >> 20} MiB"
    if any(tensor.device != device for tensor in (*(t for _, t in tape.constants), *inputs) if tensor.is_cuda):
        return "it works on several GPUs"
    for operation in tape.steps:
        if operation.on_host:
            return f"{operation.name} ({operation.place}) computes on the host"
    # What a kernel is given of the host, it is given once, in the capture. Arrays can be copied through buffers.
    staged = {slot for slot, tensor in zip(tape.inputs, inputs) if tensor.is_cpu}
    frozen = {slot for slot, tensor in tape.constants if tensor.is_cpu and slot not in tape.fixed}
    for operation in tape.steps:
        used = set(operation.slots())
        if used & frozen or (used & staged and not is_move(operation.operator)):
            return f"{operation.name} ({operation.place}) is given a tensor of the host: put it on {device}"
    if any(n > 1 and step == 0 for each in inputs for n, step in zip(each.shape, each.stride())):
        return "an argument is an expanded tensor"
    if any(map(has_gaps, inputs)) and any("as_strided" in operation.name for operation in tape.steps):
        return "as_strided reaches beyond the elements of a section"
    return ""


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


@dataclass
class _Captured:
    """A graph, what it is valid for, and the memory that it works on."""

    graph: Any
    valid_for: tuple
    """Numbers of optimizers, and settings of kernels."""
    buffers: list[Any]
    """None for inputs that are read where they are."""
    results: tuple
    gradients: tuple
    holders: list[int]
    """How many tensors share the memory of each gradient as long as nobody else keeps it."""


class GraphReplay:
    """Runs like ``Replay`` of the extension, through graphs: one for arrays on the device at the addresses of the first
    call, and others with buffers for arrays anywhere else, one for each way in which addresses are aligned."""

    def __init__(self, replay: Any, tape: Tape, name: str, device: Any, trial: Any = None) -> None:
        """``trial``: what runs before the capture in place of a recording that asks other ranks."""
        self._replay, self._tape, self._name, self._device = replay, tape, name, device
        self._trial = replay if trial is None else trial
        self._turns: Turns = turns_of(device)
        self._graphs: dict[tuple, _Captured] = {}
        self._addresses: tuple = ()
        self._staged: Any = None
        """Event after which buffers in host memory may be written again."""
        self._overlaps = Overlaps(tape)
        self._copies_gradients = False
        self._asks_ranks = asks_ranks(tape)
        self._has_waited = False
        """For other threads to end."""
        self.captures = 0
        if not _alive:
            atexit.register(reset_all)
        _alive.add(self)

    def run(self, args: tuple, named: dict[str, Any]) -> Any:
        """A tuple of tensors, or NotImplemented."""
        # Who comes while a graph of this device is launched, or captured, does without one.
        if self.captures > _CAPTURES or not self._turns.order.take():
            return self._replay.run(args, named)
        try:
            given = self._replay.given(args, named)
            found = given if given is NotImplemented else self._launch(*given)
        finally:
            self._turns.order.give_back()
        return self._replay.run_given(*given[:2]) if found is None else found

    def reset(self) -> None:
        """Let the graphs go; the next call captures another one."""
        is_mine = self._turns.order.take(wait=5.0)  # at exit, its thread may be gone
        try:
            self._graphs.clear()
        finally:
            if is_mine:
                self._turns.order.give_back()

    def _launch(self, inputs: list[Any], numbers: list[float], settings: list[int]) -> tuple | None:
        """None where there is no graph for this call."""
        addresses = tuple([tensor.data_ptr() if tensor.device == self._device else 0 for tensor in inputs])
        if not self._graphs:
            self._addresses = addresses
        place = addresses
        if addresses != self._addresses:
            if self._overlaps.are_in(inputs):  # which copies would not
                return None
            place = tuple([address % _ALIGNED for address in addresses])
        captured = self._graphs.get(place)
        if captured is not None and not captured.graph.can_be_replayed:
            del self._graphs[place]
            captured = None
        if captured is None or captured.valid_for != (numbers, settings):
            captured = self._capture(place, inputs, numbers, settings)
        elif not self._copies_gradients and not self._replay.take_back(captured.gradients, captured.holders):
            # who keeps a gradient of the last launch may keep that of each, and keeps the memory of these graphs
            self._copies_gradients = True
            self._graphs.clear()
            captured = self._capture(place, inputs, numbers, settings)
        if captured is None:
            return None
        self._turns.order.begin()
        self._fill(captured.buffers, inputs)
        captured.graph.replay()
        if self._staged is not None:
            self._turns.record(self._staged)
        with torch.inference_mode() if self._tape.enters_inference else contextlib.nullcontext():
            for written in self._tape.written_inputs:
                if captured.buffers[written] is not None:
                    inputs[written].copy_(captured.buffers[written])
            results = tuple([result.clone() for result in captured.results])
        gradients: Any = captured.gradients
        if self._copies_gradients:
            gradients = [None if each is None else each.clone() for each in gradients]
        self._replay.settle(inputs, gradients)
        self._turns.order.end()
        if self._asks_ranks:
            process_group.wait_for(self._turns.event(), self._name)
        return results

    def _fill(self, buffers: list[Any], inputs: list[Any]) -> None:
        if self._staged is not None:
            self._staged.synchronize()
        for buffer, tensor in zip(buffers, inputs):
            if buffer is not None:
                buffer.copy_(tensor)

    def _capture(self, place: tuple, inputs: list[Any], numbers: list[float], settings: list[int]) -> _Captured | None:
        """None where there is none, and nothing has changed."""
        if place not in self._graphs and len(self._graphs) == _GRAPHS:
            return None
        if self._tape.draws and not extension.module().others_may_draw and other_threads.there_are():
            if not self._has_waited:
                self._has_waited = True
                log.info(f"{self._name}: no CUDA graph as long as {_WAITS}")
            return None
        if not ALONE.acquire(blocking=False):
            return None
        before = None
        try:
            if self._graphs.pop(place, None) is not None:
                self.captures += 1
            if self.captures > _CAPTURES:
                self._do_without("numbers of its optimizer change too often; give the learning rate as a tensor")
                return None
            buffers = [
                None if tensor.device == self._device and place == self._addresses else like(tensor, _ALIGNED)
                for tensor in inputs
            ]
            if self._staged is None and any(tensor.device != self._device for tensor in inputs):
                self._staged = torch.cuda.Event()
            self._fill(buffers, inputs)
            used = [tensor if buffer is None else buffer for buffer, tensor in zip(buffers, inputs)]
            before = comparison.State(self._tape, used)
            draw_again = functools.partial(extension.module().run_from, before.generators, None, None)

            # A gradient is used after the call, when other graphs write over what this one has computed.
            homes: list[Any] = []

            def prepare() -> None:
                # libraries that torch calls prepare themselves in their first calls, which cannot be captured
                homes[:] = draw_again(self._trial.launch, used, numbers, False)[0][1]

            def restore(before: comparison.State = before) -> None:
                before.restore()
                homes[:] = [None if each is None else torch.empty_like(each) for each in homes]

            def launch() -> Any:
                results, gradients = self._replay.launch(used, numbers, True)
                made = [each for each, home in zip(gradients, homes) if home is not None]
                private_names.copy_all([home for home in homes if home is not None], made)
                return results, tuple(homes)

            graph, (results, gradients) = self._turns.capture(prepare, restore, launch, self._tape.draws)
        except RuntimeError as failure:
            if before is not None:
                before.restore()
            self._do_without(str(failure).partition("\n")[0])
            return None
        finally:
            ALONE.release()
        holders = self._replay.holders(gradients)
        self._graphs[place] = _Captured(graph, (numbers, settings), buffers, results, gradients, holders)
        return self._graphs[place]

    def _do_without(self, why: str) -> None:
        self._graphs.clear()
        self.captures = _CAPTURES + 1
        log.info(f"{self._name}: no CUDA graph, because {why}")


def reset_all() -> None:
    """At exit: process groups and the context of the device cannot go before the graphs."""
    for replay in list(_alive):
        replay.reset()
