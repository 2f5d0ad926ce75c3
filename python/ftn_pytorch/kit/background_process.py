# SPDX-License-Identifier: MIT
"""A training step in a process of its own, with the weights in memory that both processes share.

The child loads the same script, or imports the same module, and so has a network, an optimizer and a step of its own.
Its network is made to lie in the shared memory. What else it has is its own: its state is that of its script.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import multiprocessing
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.multiprocessing

from ..errors import FtnPytorchError, describe
from ..script import loading
from ..script.conventions import TRAIN
from ..system import pack, process
from . import background_start
from .outcome import outcome_of
from .publishing import parts_of, tensors_of

_NAME = "ftn_pytorch background"
# Seconds without an answer until a warning. Nobody but the user knows how long a step may take.
_PATIENCE = 300.0

# What modules make that train elsewhere, in the order in which they make it; for scripts it is with their load.
_made: dict[str, list[weakref.ref]] = {}


class Remote:
    """The child, as its parent sees it. It begins to load with its script, and ends with its parent.

    ``source``: a function that gives the child what it trains with, and what that made (``_of_module``), and its
    arguments: a module's name, or file, options and config of a script.
    ``number``: which Background of it trains, None for ``ftn_pytorch_train`` and all networks.
    ``share``: called in the parent before the first step, for the tensors that both are to have.
    """

    def __init__(self, source: tuple[Any, ...], number: int | None, share: Callable[[], list[torch.Tensor]]) -> None:
        self._source, self._number, self._share = source, number, share
        load = loading.current()
        self._folder = None if load is None else load.folder
        self._process: Any = None
        self._pipe: Any = None
        self._shares = False
        self._slots: dict[int, torch.Tensor] = {}
        # In a child nobody trains but the child itself, and a module may be the main program of a child.
        if source[0] is not _of_module and torch.multiprocessing.parent_process() is None:
            self._start()

    def step(self, *samples: Any, **named: Any) -> Any:
        """One step in the child. What it raises there is raised here; PYTHON if the child has ended."""
        self._join()
        values = (*samples, *named.values())
        return self._ask("step", self._in_slots(values), len(values), list(named))

    def state(self) -> bytes:
        """What a checkpoint of the child's script holds, empty if it has made no step."""
        return self._ask("save") if self._shares else b""

    def restore(self, state: bytes | str) -> None:
        """The opposite; also from a file of that name.

        A child that has ended is started anew, and one that has made steps which the state has not.
        """
        if self._process is not None and (not self._process.is_alive() or (self._shares and not state)):
            self.stop()
        if state:
            self._join()
            self._ask("restore", state)

    def stop(self) -> None:
        """End the child, which is in no step."""
        child, self._process, self._shares = self._process, None, False
        if child is not None:
            self._pipe.close()
            child.join()

    def _start(self) -> None:
        if multiprocessing.current_process().name == _NAME:
            raise FtnPytorchError(
                "ARGUMENT",
                "a process that trains cannot start another one: do not call submit in a step, nor "
                "Background(process=True) in a script that is loaded with background=",
            )
        # A new child knows of none.
        self._slots.clear()
        context = torch.multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        threads, info = torch.get_num_threads(), process.start_info()
        used = pack.in_use()
        folders = loading.script_folders()
        load = functools.partial(_load, self._source, self._number, self._folder, folders, threads, info)
        arguments = (theirs, used and used.file, bytes(ForkingPickler.dumps(load)))
        self._process = context.Process(target=background_start.serve, args=arguments, name=_NAME, daemon=True)
        self._process.start()
        theirs.close()

    def _join(self) -> None:
        """See that there is a child with the weights of the parent."""
        if self._shares:
            return
        if self._process is None:
            self._start()
        shared = self._share()
        if any(each.device.type != "cpu" for each in shared):
            raise FtnPytorchError(
                "DEVICE", "a process of its own trains networks in host memory only: train this one in a thread"
            )
        self._ask("share", shared)
        self._shares = True

    def _ask(self, what: str, *arguments: Any) -> Any:
        try:
            self._pipe.send((what, *arguments))
            if not self._pipe.poll(_PATIENCE):
                process.warn_once(
                    f"the process that trains has not answered for {_PATIENCE:g} s ({what}), and is waited for. If no "
                    f"step takes that long, look what process {self._process.pid} does"
                )
            status, answer = self._pipe.recv()
        except (EOFError, OSError) as failure:
            self._process.join()
            raise FtnPytorchError(
                "PYTHON",
                f"the process that trains has ended (exit code {self._process.exitcode}). The weights are those of its "
                "last step, its optimizer is lost: restore a checkpoint to go on",
            ) from failure
        if status is not None:
            # Whether the child has got them is not known.
            self._slots.clear()
            raise FtnPytorchError(status, answer)
        return answer

    def _in_slots(self, values: Sequence[Any]) -> dict[int, Any]:
        """Put tensors into shared memory; what the child does not know yet is returned, to be passed with the call."""
        new: dict[int, Any] = {}
        for i, each in enumerate(values):
            if not isinstance(each, torch.Tensor):
                self._slots.pop(i, None)
                new[i] = each
                continue
            known = self._slots.get(i)
            if known is None or known.shape != each.shape or known.dtype != each.dtype:
                known = torch.empty(each.shape, dtype=each.dtype, device="cpu").share_memory_()
                self._slots[i] = new[i] = known
            known.copy_(each)
        return new


def of_background(background: Any, step: Callable[..., Any], network: torch.nn.Module | None) -> Remote:
    """The child for a Background that a script, or a module, makes."""
    load = loading.current()
    # multiprocessing calls the main program so in the child.
    name = "__main__" if (name := _module_of(step)) == "__mp_main__" else name
    made = _made.setdefault(name, []) if load is None else load.made
    made.append(weakref.ref(background))
    source = (_of_module, name) if load is None else load.runner.source()
    return Remote(source, len(made) - 1, lambda: tensors_of([] if network is None else [network.share_memory()]))


def _module_of(step: Any) -> str:
    while isinstance(step, functools.partial):
        step = step.func
    return step.__module__


def _load(
    source: tuple[Any, ...],
    number: int | None,
    folder: str | None,
    folders: Iterable[str],
    threads: int,
    info: dict[str, str],
) -> Callable[[Any], None]:
    """In the child, before it answers by the function returned. ``info``: what the parent knows of the library.

    ``folder``: the working directory in which the script was loaded. ``folders``: those of scripts on ``sys.path``.
    """
    loading.inherit_script_folders(folders)
    process.start({**info, "adopted": "1"})
    # A daemon ends with its parent, but may have no workers of its own.
    multiprocessing.current_process().daemon = False
    torch.set_num_threads(threads)
    child, failed = None, None
    try:
        if folder is not None:
            os.chdir(folder)
        child = _Child(source, number)
    except BaseException as failure:
        failed = describe(failure, "")
    return functools.partial(_answer, child, failed)


def _answer(child: _Child | None, failed: tuple[str, str] | None, pipe: Any) -> None:
    """Answer until the parent is gone."""
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            what, *arguments = pipe.recv()
            try:
                answer = failed or (None, getattr(child, what)(*arguments))
            except BaseException as failure:
                answer = describe(failure, "")
            pipe.send(answer)


class _Child:
    """What the child has loaded."""

    def __init__(self, source: tuple[Any, ...], number: int | None) -> None:
        opens, self._name, *others = source
        self._kept, made = opens(self._name, *others)
        self._slots: dict[int, Any] = {}
        self._networks: Callable[[], Iterable[Any]]
        if number is None:
            self._step, self._networks = self._kept.bind(TRAIN, 0)[0], lambda: self._kept.networks().values()
        elif number < len(made):
            background: Any = made[number]()
            self._step, trained = background.local
            self._networks = lambda: trained
        else:
            raise FtnPytorchError(
                "ARGUMENT",
                f"{self._name} makes no Background(process=True) while it is loaded: make it at the top of the script, "
                "or in ftn_pytorch_setup",
            )

    def share(self, shared: list[torch.Tensor]) -> None:
        """Let the networks lie in the memory of these."""
        self._shared, self._trained = shared, list(self._networks())
        for tensor, memory in zip(self._parts(), shared):
            tensor.data = memory

    def _parts(self) -> list[torch.Tensor]:
        """What is trained, as it is now."""
        here = parts_of(self._trained)
        if [each.shape for each in here] != [each.shape for each in self._shared]:
            raise FtnPytorchError("SHAPE", f"{self._name} has another network in the process that trains than outside")
        return here

    def _tell(self) -> None:
        """Copy what the script has put elsewhere: a network that it casts, or a parameter that it replaces."""
        for tensor, memory in zip(self._parts(), self._shared):
            if tensor.data_ptr() != memory.data_ptr():
                memory.copy_(tensor.detach())

    def step(self, new: dict[int, Any], count: int, names: list[str]) -> Any:
        self._slots.update(new)
        # The next samples come into the same memory, and a step may keep these.
        kept = [self._slots[i] for i in range(count)]
        values = [each.clone() if isinstance(each, torch.Tensor) else each for each in kept]
        split = count - len(names)
        outcome = outcome_of(self._step(*values[:split], **dict(zip(names, values[split:]))))
        self._tell()
        return outcome

    def save(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "child")
            self._kept.save(path)
            with open(path, "rb") as stream:
                return stream.read()

    def restore(self, state: bytes | str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = state if isinstance(state, str) else os.path.join(folder, "child")
            if isinstance(state, bytes):
                with open(path, "wb") as stream:
                    stream.write(state)
            self._kept.restore(path)
        # A hook may make a new network. Those that lie in the memory already stay there, whatever their names are now.
        networks = list(self._networks())
        if not {*map(id, networks)} <= {*map(id, self._trained)}:
            self._trained = networks
        self._tell()


def _of_module(name: str) -> tuple[Any, list[Any]]:
    """A checkpoint of the names of a module, and what it made, for the child."""
    from ..checkpoint.script import ScriptCheckpoint
    from ..script.conventions import PREFIX
    from ..values import graph

    kept = ScriptCheckpoint(name, {})
    names = vars(importlib.import_module(name))
    kept.use(names, graph.after_load(names, PREFIX))
    return kept, _made.get(name, [])
