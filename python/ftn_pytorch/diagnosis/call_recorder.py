# SPDX-License-Identifier: MIT
"""FTN_PYTORCH_RECORD: the first calls with their arrays, in a folder that ``replay`` runs again without Fortran.

::

    record.json           format, versions, working directory
    module-1/load.json    file, options, configuration, state of the random generators before the load
    module-1/load.npz     arrays of these
    module-1/emulator.py  copy of the file
    module-1/restored-3   state of the module after a restore that came before the third call
    module-1/assigned-3.json, .npz  the same for weights that were published to it
    call-0001/call.json   module, function, arguments, random generators; written before the call
    call-0001/call.npz
    call-0001/result.json results, changed arguments or the exception; missing if the program ended in the call
    call-0001/result.npz

Arrays are NumPy files without pickled objects. Needs NumPy.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import summary
from ..script import results
from ..system import launcher, log, process
from ..values import is_tensor, random_states
from .call_files import CallWriter

FORMAT = 2
VARIABLE = "FTN_PYTORCH_RECORD"
CALLS_VARIABLE = "FTN_PYTORCH_RECORD_CALLS"
DEFAULT_CALLS = 10
USUAL_LIMIT = 1 << 30
"""Bytes of the arrays of all calls."""
RESTORED, ASSIGNED = "restored", "assigned"


def _ends_recording(method: Callable) -> Callable:
    """A method whose failure ends the recording, with a warning, and never the call that is recorded."""

    @functools.wraps(method)
    def guarded(self: Recorder, *args: Any) -> Any:
        if self.ended:
            return None
        try:
            return method(self, *args)
        except Exception as failure:
            self.ended = True
            process.warn(f"{VARIABLE}: nothing more is recorded: {summary(failure)}")
            return None

    return guarded


class Recorder:
    """Writes modules and calls of this process into a folder."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.ended = False
        self._folder = folder
        self._limit = limit
        library = process.host()
        self._bytes_left = library.size_limit(USUAL_LIMIT) if library else USUAL_LIMIT
        self._calls = 0
        self._modules = 0
        # a runner that is freed leaves its id to another one
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._loads: weakref.WeakKeyDictionary[Any, tuple[Mapping[str, Any], Mapping[str, Any]]]
        self._loads = weakref.WeakKeyDictionary()
        if any(any(folder.glob(pattern)) for pattern in ("record.json", "module-*", "call-*")):
            raise FileExistsError(f"{folder} holds a recording already: remove it, or name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        facts = {
            "format": FORMAT,
            "ftn_pytorch": __version__,
            "python": sys.version,
            "torch": getattr(torch, "__version__", None),
            "numpy": getattr(numpy, "__version__", None),
            "directory": os.getcwd(),
            "rank": launcher.launched_rank_and_size()[0],
        }
        (folder / "record.json").write_text(json.dumps(facts, indent=1))

    def before_load(self) -> dict[str, Any]:
        """State that a load starts from."""
        return random_states.capture()

    @staticmethod
    def _seed(state: Mapping[str, Any]) -> int | None:
        """Seed of torch's generator if the load has imported torch: it is another one in each process."""
        torch = sys.modules.get("torch")
        return None if "torch" in state or torch is None else torch.initial_seed()

    @_ends_recording
    def loaded(self, runner: Any, options: Mapping[str, Any], config: Mapping[str, Any], state: Mapping) -> None:
        """Write what ``runner`` was loaded from; ``state`` is that of ``before_load``."""
        if not os.path.isfile(runner.path):
            process.warn(f"{runner.path} is in a server: its calls are not recorded")
            return
        self._modules += 1
        self._numbers[runner], self._loads[runner] = self._modules, (options, config)
        folder = self._folder / f"module-{self._modules}"
        folder.mkdir()
        shutil.copyfile(runner.path, folder / os.path.basename(runner.path))
        store = CallWriter()
        # A handle of MPI means nothing in the process that replays.
        kept = {name: value for name, value in options.items() if name != "communicator"}
        facts = {
            "file": os.path.abspath(runner.path),
            "copy": os.path.basename(runner.path),
            "options": store.add(kept, "options"),
            "config": store.add(dict(config), "config"),
            "random": store.add(dict(state), "random"),
            "torch_seed": self._seed(state),
        }
        _write(store, folder, "load", facts)

    def reloaded(self, runner: Any, state: Mapping) -> None:
        """The calls that follow are those of another module, whose file may have changed."""
        if runner in self._loads and self._calls < self._limit:
            self.loaded(runner, *self._loads[runner], state)

    @_ends_recording
    def restored(self, runner: Any) -> None:
        """Write the state that a restore has given a module: the checkpoint may be gone when this is replayed."""
        folder = self._folder_for_next_call(runner)
        if folder is not None:
            runner.save(str(folder / f"{RESTORED}-{self._calls + 1}"))
            (folder / f"{ASSIGNED}-{self._calls + 1}.json").unlink(missing_ok=True)

    @_ends_recording
    def assigned(self, runner: Any, weights: Mapping[str, Any]) -> None:
        """Write the weights that ``publish`` has given a saved model."""
        folder = self._folder_for_next_call(runner)
        if folder is not None:
            store = CallWriter()
            _write(store, folder, f"{ASSIGNED}-{self._calls + 1}", {"weights": store.add(dict(weights), "weights")})

    def _folder_for_next_call(self, runner: Any) -> Path | None:
        """That of a module, None if nothing of it is recorded any more."""
        number = self._numbers.get(runner)
        return None if number is None or self._calls >= self._limit else self._folder / f"module-{number}"

    @_ends_recording
    def begin(self, runner: Any, name: str, flags: int, args: tuple, kwargs: Mapping[str, Any]) -> Any:
        """Write a call that is about to be made. Returns what ``end`` needs, None when enough were recorded."""
        if self._calls >= self._limit:
            return None
        number = self._numbers.get(runner)
        if number is None:
            return ()
        store = CallWriter()
        arguments = store.add([list(args), dict(kwargs)])
        self._bytes_left -= store.size()
        if self._bytes_left < 0:
            self._limit = self._calls
            log.job_warning(
                f"{VARIABLE}: no call is recorded after number {self._calls}, "
                "the next one goes beyond FTN_PYTORCH_LOG_LIMIT"
            )
            return None
        self._calls += 1
        folder = self._folder / f"call-{self._calls:04d}"
        folder.mkdir()
        facts = {
            "module": number,
            "function": name,
            "flags": flags,
            "arguments": arguments,
            "random": store.add(random_states.capture(), "random"),
        }
        _write(store, folder, "call", facts)
        return folder, store, [list(args), dict(kwargs)], time.perf_counter()

    @_ends_recording
    def end(self, record: tuple | None, result: Any, failure: BaseException | None) -> None:
        """Write the outcome of a call."""
        if not record:
            return
        folder, before, arguments, begin = record
        seconds = time.perf_counter() - begin
        self._bytes_left -= write_outcome(folder, outcome_of(result, failure), before.changes(arguments), seconds)


def outcome_of(result: Any, failure: BaseException | None) -> dict[str, Any]:
    """What a call came to, as values that can be stored: names and values of the results, or the exception."""
    if failure is not None:
        return {"exception": type(failure).__name__, "text": summary(failure)}
    try:
        names, values = results.unpack(result)
    except Exception as problem:
        return {"exception": type(problem).__name__, "text": summary(problem)}
    # On the host, but of the type that it has: half precision is compared as such.
    on_host = [value.cpu() if is_tensor(value) else value for value in values]
    return {"names": None if names is None else list(names), "values": on_host}


def write_outcome(folder: Path, outcome: Mapping[str, Any], changes: Mapping[str, Any], seconds: float) -> int:
    """``result.json`` and ``result.npz`` of a call; the size of its arrays in bytes.

    ``changes`` are arguments that the function changed in place.
    """
    store = CallWriter()
    facts = {"outcome": store.add(dict(outcome)), "changes": store.add(dict(changes), "changes"), "seconds": seconds}
    _write(store, folder, "result", facts)
    return store.size()


def _write(store: CallWriter, folder: Path, name: str, facts: Mapping[str, Any]) -> None:
    store.write(folder, name, facts)
    for text in store.unknown:
        process.warn_once(f"{VARIABLE}: {folder / name}.json lacks a value, so this call cannot be replayed: {text}")


_recorder: Recorder | None = None
_tried = False


def recorder() -> Recorder | None:
    """The recorder of this process, None unless FTN_PYTORCH_RECORD asks for one; what prevents it is a warning."""
    global _recorder, _tried
    if _tried:
        return _recorder
    _tried = True
    name = os.environ.get(VARIABLE, "")
    library = process.host()
    if name in ("", "0") or (library and not library.writes_here()):
        return None
    try:
        import numpy  # noqa: F401

        _recorder = Recorder(_folder_for_rank(name), _limit())
    except (OSError, ValueError, ImportError) as failure:
        process.warn(f"{VARIABLE}: nothing is recorded: {failure}")
    return _recorder


def _limit() -> int:
    text = os.environ.get(CALLS_VARIABLE) or str(DEFAULT_CALLS)
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"{CALLS_VARIABLE} is {text!r}, it must be a number of calls, at least 1")
    return int(text)


def _folder_for_rank(name: str) -> Path:
    rank, size = launcher.launched_rank_and_size()
    folder = Path(name.replace("%r", str(rank)))
    return folder / f"rank-{rank}" if size > 1 and "%r" not in name else folder
