# SPDX-License-Identifier: MIT
"""A training step in a process of its own, with the weights in memory that both processes share.

The child loads the same script, or imports the same module, and so has a network, an optimizer and a step of its own.
Its network is made to lie in the shared memory. What else it has is its own: its state is that of its script.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.multiprocessing

from .. import loading
from ..conventions import TRAIN
from ..errors import FtnPytorchError, describe
from .background import Background
from .weights import Weights, number, parts_of, tensors_of

# What modules make that train elsewhere, in the order in which they make it; for scripts it is with their load.
_made: dict[str, list[weakref.ref]] = {}


class Remote:
    """The child, as its parent sees it. It starts with the first step, and ends with its parent.

    ``source``: what the child loads: a module's name, or file, options and config of a script.
    ``number``: which Background of it trains, None for ``ftn_pytorch_train`` and all networks.
    ``share``: called in the parent before the child starts, for the tensors that both are to have.
    """

    def __init__(self, source: tuple[Any, ...], number: int | None, share: Callable[[], list[torch.Tensor]]) -> None:
        self._source, self._number, self._share = source, number, share
        self._process: Any = None
        self._pipe: Any = None
        self._slots: list[torch.Tensor] = []

    def step(self, *samples: Any, **named: Any) -> Any:
        """One step in the child. What it raises there is raised here; PYTHON if the child has ended."""
        return self._ask("step", *self._in_slots((*samples, *named.values())), list(named))

    def state(self) -> bytes | None:
        """What a checkpoint of the child's script holds, None if it has not been started."""
        return None if self._process is None else self._ask("save")

    def restore(self, state: bytes) -> None:
        """The opposite."""
        self._ask("restore", state)

    def stop(self) -> None:
        """End the child, which is in no step."""
        child, self._process = self._process, None
        if child is not None:
            self._pipe.close()
            child.join()

    def _ask(self, what: str, *arguments: Any) -> Any:
        if self._process is None:
            self._start()
        try:
            self._pipe.send((what, *arguments))
            status, answer = self._pipe.recv()
        except (EOFError, OSError) as failure:
            self._process.join()
            raise FtnPytorchError(
                "PYTHON",
                f"the process that trains has ended (exit code {self._process.exitcode}). The weights are those of its "
                "last step, its optimizer is lost: restore a checkpoint after a restart",
            ) from failure
        if status is not None:
            raise FtnPytorchError(status, answer)
        return answer

    def _start(self) -> None:
        shared = self._share()
        if any(each.device.type != "cpu" for each in shared):
            raise FtnPytorchError(
                "DEVICE", "a process of its own trains networks in host memory only: train this one in a thread"
            )
        context = torch.multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, self._source, self._number, shared, torch.get_num_threads())
        self._slots = []
        self._process = context.Process(target=_serve, args=arguments, name="ftn_pytorch background", daemon=True)
        self._process.start()
        theirs.close()

    def _in_slots(self, samples: Sequence[Any]) -> tuple[dict[int, Any], int]:
        """The samples, tensors in shared memory: those that the child does not know yet are passed with the call."""
        new: dict[int, Any] = {}
        for i, each in enumerate(samples):
            if not isinstance(each, torch.Tensor):
                new[i] = each
                continue
            known = self._slots[i] if i < len(self._slots) else None
            if known is None or known.shape != each.shape or known.dtype != each.dtype:
                known = torch.empty(each.shape, dtype=each.dtype).share_memory_()
                self._slots[i:] = [known]
                new[i] = known
            known.copy_(each)
        return new, len(samples)


def of_background(background: Any, step: Callable[..., Any], network: torch.nn.Module | None) -> Remote:
    """The child for a Background that a script, or a module, makes."""
    load = loading.current()
    # multiprocessing calls the main program so in the child.
    name = "__main__" if step.__module__ == "__mp_main__" else step.__module__
    made = _made.setdefault(name, []) if load is None else load.made
    made.append(weakref.ref(background))
    source = (name,) if load is None else load.runner.source()
    return Remote(source, len(made) - 1, lambda: tensors_of([] if network is None else [network.share_memory()]))


def of_runner(runner: Any) -> Background:
    """``ftn_pytorch_train`` of a script in a child, which publishes to the networks of the script here."""
    background = Background(lambda: None)
    shared: list[torch.Tensor] = []

    itself = weakref.ref(runner)  # who keeps this

    def here() -> list[torch.Tensor]:
        alive = itself()
        return tensors_of(alive.networks().values() if alive else [])

    def share() -> list[torch.Tensor]:
        shared[:] = [each.clone().share_memory_() for each in here()]
        return shared

    background.use(Remote(runner.source(), None, share), Weights(lambda: shared, here))
    return background


def _serve(pipe: Any, source: tuple[Any, ...], number: int | None, shared: list[torch.Tensor], threads: int) -> None:
    """What the child does until its parent is gone."""
    torch.set_num_threads(threads)
    child: Any = None
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            what, *arguments = pipe.recv()
            try:
                child = child or _Child(source, number, shared)
                answer = (None, getattr(child, what)(*arguments))
            except BaseException as failure:
                answer = describe(failure, "")
            pipe.send(answer)


class _Child:
    """What the child has loaded."""

    def __init__(self, source: tuple[Any, ...], number: int | None, shared: list[torch.Tensor]) -> None:
        self._kept: Any
        if len(source) == 1:
            self._kept = _of_module(importlib.import_module(*source))
            made = _made.get(source[0], [])
        else:
            from ..runners import open_runner

            self._kept = open_runner(*source)
            made = self._kept.made
        if number is None:
            self._step, networks = self._kept.bind(TRAIN, 0)[0], list(self._kept.networks().values())
        elif number < len(made):
            self._step, networks = made[number]().local
        else:
            raise FtnPytorchError(
                "ARGUMENT",
                f"{source[0]} makes no Background(process=True) while it is loaded: make it at the top of the script, "
                "or in ftn_pytorch_setup",
            )
        here = parts_of(networks)
        if [each.shape for each in here] != [each.shape for each in shared]:
            raise FtnPytorchError("SHAPE", f"{source[0]} has another network in the process that trains than outside")
        for tensor, memory in zip(here, shared):
            tensor.data = memory
        self._slots: dict[int, Any] = {}

    def step(self, new: dict[int, Any], count: int, names: list[str]) -> Any:
        self._slots.update(new)
        values = [self._slots[i] for i in range(count)]
        split = count - len(names)
        outcome = self._step(*values[:split], **dict(zip(names, values[split:])))
        if isinstance(outcome, tuple):
            return tuple(map(number, outcome))
        return number(outcome)

    def save(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "child")
            self._kept.save(path)
            with open(path, "rb") as stream:
                return stream.read()

    def restore(self, state: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "child")
            with open(path, "wb") as stream:
                stream.write(state)
            self._kept.restore(path)


def _of_module(module: Any) -> Any:
    from ..checkpoint.script import ScriptCheckpoint

    kept = ScriptCheckpoint(module.__name__, {})
    kept.use(vars(module))
    return kept
