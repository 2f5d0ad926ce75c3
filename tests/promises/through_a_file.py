# SPDX-License-Identifier: MIT
"""Calls of recorded functions, watched in the script and made again by the file that they are saved to.

While a ``Watcher`` is entered, all that is recorded is watched. As soon as the calls of a function run without Python,
the function is saved, and what a program has to do for the same numbers is noted: which numbers of optimizers the
script has set, where it has changed tensors or drawn random numbers by itself, the arguments, and what came out.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import types
from pathlib import Path
from typing import Any

import torch

from ftn_pytorch import save_recording
from ftn_pytorch.checkpoint.script import ScriptCheckpoint
from ftn_pytorch.errors import FtnPytorchError
from ftn_pytorch.recording import function
from ftn_pytorch.recording.arguments import leaves
from ftn_pytorch.recording.recorder import ALONE
from ftn_pytorch.saved import distinct, writing
from ftn_pytorch.script.results import parts_of
from ftn_pytorch.values import optimizer_settings
from ftn_pytorch.values.contents import memory_of

MOST_FILES, MOST_CALLS, MOST_TRIALS = 4, 5, 40
_OF_TESTS = ("recorded", "make_module")
"""Names that a script of the corpus is given."""


@dataclasses.dataclass
class Call:
    """A call that ran without Python, and what the script did by itself before it."""

    restore: str
    """Checkpoint of the script, where it had changed tensors or drawn numbers; else empty."""
    numbers: dict[str, float]
    """Numbers of optimizers that the script had changed."""
    args: tuple
    named: dict[str, Any]
    on_device: torch.Tensor
    """State of the generator of the GPU before the call; empty on the host."""
    result: Any = None
    after: Any = None
    """The arguments afterwards."""


@dataclasses.dataclass
class Run:
    """A file, the calls that were made after it was written, and what the script had then."""

    file: str
    calls: list[Call]
    arrays: dict[str, Any]
    numbers: dict[str, float]
    generator: Any
    is_over: bool = False


@dataclasses.dataclass
class Watcher:
    """``runs``: what is to be made again. ``refused``: why functions could not be saved. ``unwritten``: their files."""

    folder: Path
    runs: list[Run] = dataclasses.field(default_factory=list)
    refused: list[str] = dataclasses.field(default_factory=list)
    unwritten: list[str] = dataclasses.field(default_factory=list)
    made: list[Any] = dataclasses.field(default_factory=list)
    paths: int = 0

    def __enter__(self) -> Watcher:
        """From now on what is recorded is watched."""
        self._before = function.RecordedFunction
        function.RecordedFunction = functools.partial(Watched, self)
        return self

    def __exit__(self, *failure: Any) -> None:
        function.RecordedFunction = self._before

    def path(self, ending: str) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.paths += 1
        return str(self.folder / f"{self.paths}.{ending}")


class Watched(function.RecordedFunction):
    """The recordings of one function. The function itself stays what a script has, with nothing around it."""

    def __init__(self, watcher: Watcher, called: Any, *settings: Any) -> None:
        super().__init__(called, *settings)
        self._watcher, self._called = watcher, called
        self._run: Run | None = None
        self._tapes: list[Any] = []
        self._files = self._trials = 0
        self.was_ready = False
        watcher.made.append(self)

    def __call__(self, args: tuple, named: dict[str, Any]) -> Any:
        if not self.is_ready or ALONE._is_owned():
            return super().__call__(args, named)
        self.was_ready = True
        call = self._begin(args, named)
        if call is None:
            return super().__call__(args, named)
        ready, run = self._ready, self._run
        before = [each.replay.runs for each in ready]
        result = super().__call__(args, named)
        served = [each.tape for each, runs in zip(ready, before) if each.replay.runs > runs]
        # one that did not hold then is in the file only where nothing else is meant
        if not any(each is other for each in served for other in self._held):
            run.is_over = True
            if not run.calls:  # for another kind of call
                self._run, self._files = None, self._files - 1
            return result
        call.result, call.after = copy.deepcopy(plain(result)), self._copied(args, named)
        state = State(names_of(self._called), (args, named))
        self._is_random = not torch.equal(self._drawn, state.drawn)
        run.calls.append(call)
        run.arrays, run.numbers = state.arrays, state.numbers
        if self._is_random or call.restore:
            run.generator = state.generator
        self._drawn = state.drawn
        if len(run.calls) == 1:
            self._watcher.runs.append(run)
        run.is_over = len(run.calls) == MOST_CALLS
        return result

    def _begin(self, args: tuple, named: dict[str, Any]) -> Call | None:
        """What a program has to do before the call; None where it is not watched any more."""
        tapes, run = self.tapes(), self._run
        is_method = bool(args) and _is_method(self._called, args[0])
        if is_method and not any(each.arguments[0].value is args[0] for each in tapes):
            return None
        is_known = len(tapes) == len(self._tapes) and all(map(lambda one, other: one is other, tapes, self._tapes))
        if run is None or not is_known:
            self._trials += 1
            if self._files == MOST_FILES or self._trials > MOST_TRIALS:
                return None
            self._files, self._tapes = self._files + 1, tapes
            self._held = [each for each in tapes if distinct._holds(each)]
            self._is_method, self._owner = is_method, args[0] if args else None
            path = self._watcher.path("ftr")
            try:
                save_recording(path, {"step": self._saved(args)}, names_of(self._called))
            except FtnPytorchError as refusal:
                if "none holds now" in str(refusal):
                    self._run, self._files = None, self._files - 1
                    return None
                self._watcher.unwritten.append(path)
                self._watcher.refused.append(f"{refusal.status}: {refusal}")
                self._run = Run("", [], {}, {}, None, True)
                return None
            state = State(names_of(self._called), (args, named))
            self._drawn, self._is_random = state.drawn, False
            self._run = Run(path, [], state.arrays, state.numbers, state.generator)
            return Call("", {}, *self._copied(args, named), state.on_device)
        if run.is_over or (self._is_method and args[0] is not self._owner):
            run.is_over = True
            return None
        return self._later(run, args, named)

    def _later(self, run: Run, args: tuple, named: dict[str, Any]) -> Call:
        state, restore = State(names_of(self._called), (args, named)), ""
        drawn = self._is_random and not torch.equal(state.drawn, self._drawn)
        if drawn or not is_same(state.arrays, run.arrays):
            restore = self._watcher.path("ckpt")
            state.checkpoint.save(restore)
        before = state.numbers if restore else run.numbers
        changed = {name: value for name, value in state.numbers.items() if before.get(name) != value}
        self._drawn = state.drawn
        return Call(restore, changed, *self._copied(args, named), state.on_device)

    def _saved(self, args: tuple) -> Any:
        """What is saved: the function, or the method of an object, which is no argument of a file then."""
        called = types.SimpleNamespace(recording=self)
        return types.MethodType(_Called(self), args[0]) if self._is_method else called

    def _copied(self, args: tuple, named: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        return copy.deepcopy((args[self._is_method :], named))


# what code of a script leads to, and what runs, is looked at, unless it is of a package
Watched.__module__ = function.RecordedFunction.__module__
for _each in vars(Watched).values():
    if isinstance(_each, types.FunctionType):
        _each.__code__ = _each.__code__.replace(co_filename=function.__file__)


class _Called:
    """A function as ``recorded`` returns it."""

    def __init__(self, recording: Any) -> None:
        self.recording = recording

    def __call__(self, *args: Any) -> None: ...


def _is_method(called: Any, first: Any) -> bool:
    found = getattr(type(first), getattr(called, "__name__", ""), None)
    return getattr(found, "__wrapped__", None) is called


class State:
    """What a checkpoint of some names would hold now, without arrays that are ``given``: a program has its own."""

    def __init__(self, names: dict[str, Any], given: Any) -> None:
        self.checkpoint = ScriptCheckpoint("the script", {})
        self.checkpoint.use(names, None)
        encoder, _, arrays = writing.live(self.checkpoint, "nowhere")
        handed = {memory_of(each) for each in leaves(given) if isinstance(each, torch.Tensor)} - {0}
        tensors = {name: each for name, each in arrays.items() if isinstance(each, torch.Tensor)}
        self.arrays = {name: each.detach().clone() for name, each in tensors.items() if memory_of(each) not in handed}
        found = optimizer_settings.names_of(encoder.optimizers())
        self.numbers = {name: source.value() for name, source in found.items()}
        self.generator = torch.get_rng_state()
        is_on_device = torch.get_default_device().type == "cuda"
        self.on_device = torch.cuda.get_rng_state() if is_on_device else self.generator[:0]
        self.drawn = torch.cat([self.generator, self.on_device])


def names_of(called: Any) -> dict[str, Any]:
    """The names that lead to the state of a function: all of a script, or what a function of a test refers to."""
    found: dict[str, Any] = {}
    owner = getattr(called, "__self__", None)
    while hasattr(called, "__wrapped__") or hasattr(called, "__func__"):
        called = getattr(called, "__wrapped__", None) or called.__func__
    if not hasattr(called, "__code__"):
        return {"net": called}
    is_script = called.__globals__["__name__"].startswith("case_")
    _collect(called, found, with_globals=not is_script)
    if is_script:
        found.update((name, value) for name, value in called.__globals__.items() if name not in _OF_TESTS)
    return found if owner is None else {**found, "owner": owner}


def _collect(called: Any, found: dict[str, Any], with_globals: bool) -> None:
    called = getattr(called, "__wrapped__", called)
    if not hasattr(called, "__code__"):
        return
    for name, cell in zip(called.__code__.co_freevars, called.__closure__ or ()):
        if name in found:
            continue
        found[name] = cell.cell_contents
        if hasattr(cell.cell_contents, "__code__") and cell.cell_contents is not called:
            _collect(cell.cell_contents, found, with_globals)
    for name in called.__code__.co_names if with_globals else ():
        value = called.__globals__.get(name)
        if isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)):
            found[name] = value
        elif hasattr(value, "__code__") and name not in found:
            found[name] = value
            _collect(value, found, with_globals)


def plain(value: Any) -> Any:
    """A result as lists of what is in it, whatever its containers are."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    names, items = parts_of(value)
    return value if items is None else [plain(each) for each in items]


def is_same(one: Any, other: Any) -> bool:
    """Bit for bit, with types and shapes."""
    if isinstance(one, torch.Tensor):
        if not isinstance(other, torch.Tensor) or (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        if one.layout is not torch.strided:
            return torch.equal(one.to_dense(), other.to_dense())
        # torch compares no bits: a number that is none differs from itself
        a, b = (each.detach().resolve_conj().resolve_neg().contiguous().reshape(-1) for each in (one, other))
        return torch.equal(a.view(torch.uint8), b.view(torch.uint8))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(each, other[name]) for name, each in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return type(one) is type(other) and (one == other or one != one)


def tensors_of(call: Call) -> list[Any]:
    return list(leaves((call.args, call.named)))
