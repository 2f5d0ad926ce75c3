# SPDX-License-Identifier: MIT
"""The runner for Python scripts."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import weakref
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from ..errors import FtnPytorchError
from ..script import conventions, framework, loading, parameters
from ..script.conventions import FORWARD, RESTORE, SAVE, SETUP, TRAIN, Convention
from ..system import log, process
from ..values import graph
from .base import Runner
from .options import Options

RECORDING = ".ftr"
"""Files with this ending hold what is recorded of a script."""


class ScriptRunner(Runner):
    """A script, run once as a module of its own; ``ftn_pytorch_setup`` has been called when the constructor returns."""

    backend = "script"

    def __init__(self, path: str, options: Options, config: dict[str, Any], opens: Callable) -> None:
        """``opens``: what a process that trains for this one calls with ``path``, options and config."""
        super().__init__(path, options)
        self._opens = opens
        options.refuse_training(path, "is a script, which sets the mode of its networks itself")
        self._config = config
        self._checkpoint: Any = None
        self._background: Any = None
        self._module_name = loading.module_name(path)
        self._load()
        # The name becomes free with the runner, and the script's objects with the last function that is still in use.
        weakref.finalize(self, loading.forget_module, self._module_name, self.path).atexit = False

    def reload(self) -> None:
        loading.find(self.path)
        self._load()

    def _load(self) -> None:
        with (
            self.at_work(),
            loading.undone_on_failure(self.path, self._module_name),
            loading.begun(self) as load,
        ):
            torch_was_loaded = framework.is_torch_loaded()
            module = loading.execute(self.path, self._module_name)
            conventions.require_functions(vars(module), self.path)
            for name, meant in conventions.misspelt_hooks(vars(module)):
                log.job_warning(f"{self.path} defines {name}, which nothing looks for; did you mean {meant!r}?")
            self._set_up(module, framework.decide(module, self.path, torch_was_loaded))
            chosen = framework.decide(module, self.path, torch_was_loaded)
            place = self._placed(module, chosen)
            compiled = self._compile(module, chosen, place)
            if self._options.record and chosen != framework.TORCH:
                text = f"{self.path} uses NumPy, which cannot be recorded: leave out record="
                raise FtnPytorchError("ARGUMENT", text)
            if conventions.SHARED in vars(module):
                from ..checkpoint import shared

                shared.declared(vars(module), self.path)
            background = self._beside(module, chosen, place) if self._options.background else None
            override = conventions.check_override(vars(module).get(conventions.OVERRIDE), self.path)
            functions = [vars(module)[name] for name in _functions_of(module)]
            declared = vars(module).get(conventions.SHAPES, {})
            shapes = conventions.parse_shapes(declared, functions, self.path)
        process.settle_threads()
        self._module, self._override, self._shapes, self._compiled = module, override, shapes, compiled
        if self._background is not None:
            self._background.stop()
        self._background = background
        self._hooks: dict[str, tuple[Callable | None, Any]] = {}
        self._compiled_of, self.names = vars(module).get(FORWARD), vars(module)
        self.framework, self.device, self.made = chosen, place, load.made
        self._first = graph.after_load(vars(module), conventions.PREFIX)

    def _placed(self, module: ModuleType, chosen: str) -> str | None:
        """The device on which the script computes, None for the host; its networks are there then."""
        if self._options.device is None:
            return None
        from ..tensors import device

        place = device.resolve(self._options.device, chosen)
        if place is not None:
            device.move_modules(vars(module), place)
        return place

    def _compile(self, module: ModuleType, chosen: str, place: str | None) -> Callable | None:
        """What takes the place of ``ftn_pytorch_forward``, if anything; see ``compiling.compile_script``."""
        mode, backend = self._options.compile, self._options.compile_backend
        if mode is None:
            return None
        if chosen != framework.TORCH:
            text = f"{self.path} uses NumPy, which torch.compile cannot work on: leave out compile="
            raise FtnPytorchError("ARGUMENT", text)
        from ..script import compiling

        compiling.prepare(backend, place)
        return compiling.compile_script(vars(module), mode, backend, self.path)

    def _beside(self, module: ModuleType, chosen: str, place: str | None) -> Any:
        """What ``ftn_pytorch_train`` becomes with ``background=``."""
        if chosen != framework.TORCH or place is not None or TRAIN not in vars(module):
            raise FtnPytorchError(
                "ARGUMENT",
                f"{self.path} cannot train in the background: background= is for scripts that have {TRAIN} and train "
                "with torch on the host. Leave it out, and see Background of ftn_pytorch.kit, which trains in a thread",
            )
        hooks = [name for name in (SAVE, RESTORE) if name in vars(module)]
        if hooks:
            raise FtnPytorchError(
                "ARGUMENT",
                f"{self.path} cannot train in the background: {hooks[0]} would run here, where nothing is trained. "
                "Leave them out, then checkpoints keep what the other process has learnt, or leave out background=",
            )
        from .background import of_runner

        return of_runner(self)

    def attached(self) -> dict[str, Any]:
        from ..checkpoint import background_runs

        trains = {} if self._background is None else {background_runs.NAME: self._background}
        return {**super().attached(), **trains}

    def source(self) -> tuple[Callable, str, dict[str, Any], dict[str, Any]]:
        """A function and arguments with which another process, which is no rank of MPI, has the same."""
        options = {**dataclasses.asdict(self._options), "background": False, "communicator": None}
        return self._opens, self.path, options, self._config

    def _recorded(self, name: str, function: Callable) -> Callable:
        """The function, or what is recorded of it; what the script has recorded itself stays a part of a Python one."""
        if not self._options.record or name not in (FORWARD, TRAIN) or hasattr(function, "recording"):
            return function
        from ..recording.function import recorded

        def make() -> Any:
            is_compiled = self._options.record == "compiled"
            made = recorded(function, tolerance=self._options.tolerance, compiled=is_compiled)
            made.recording.name = name  # that of what a decorator has made of it says nothing
            return made

        return self._made_once(name, name, make)

    def _made_once(self, key: str, name: str, make: Callable[[], Any]) -> Any:
        """What was made for a function, as long as its name stands for that."""
        function = self.find(name)
        known = self._hooks.get(key)
        if known is None or known[0] is not function:
            known = self._hooks[key] = (function, make())
        return known[1]

    def _set_up(self, module: ModuleType, chosen: str) -> None:
        setup = vars(module).get(SETUP)
        if setup is None:
            if self._config:
                given = ", ".join(self._config)
                raise FtnPytorchError("HOOK", f"{self.path} defines no {SETUP}, which would take the config ({given})")
            return
        signature = conventions.signature_of(setup)
        conventions.check_call(SETUP, signature, (), self._config)
        config = {name: framework.fresh(value, chosen) for name, value in self._config.items()}
        try:
            self._expect_done(SETUP, "SCRIPT", loading.run(self.path, setup, **config))
        except FtnPytorchError as failure:
            from ..script import call_text

            passed = call_text.describe(signature, (), config, self.layout, failure.text)
            raise FtnPytorchError(failure.status, f"{failure.text}\n{passed}".rstrip()) from failure

    def save(self, file: str) -> None:
        with self.at_work():
            if file.endswith(RECORDING):
                self._save_recordings(_with_rank(file))
            elif self._has_hook(SAVE):
                self._call_with_file(SAVE, _with_rank(file))
            else:
                self._kept(SAVE).save(file)

    def _save_recordings(self, file: str) -> None:
        """Write what is recorded of the script, and its state, to a file that runs without Python."""
        from ..saved import writing

        # Fortran calls the hooks: one that is not in the file is told, whatever else is
        hooks = [name for name in (FORWARD, TRAIN) if callable(self.find(name))]
        named = {name: each for name, each in vars(self._module).items() if writing.recording_of(each) is not None}
        found = {**{name: self._recorded(name, self.require(name)) for name in hooks}, **named}
        tapes, whys = {}, []
        for name, function in found.items():
            try:
                tapes[name] = writing.tapes_of(name, function)
            except FtnPytorchError as failure:
                whys.append(failure.text)
        if not tapes:
            why = "; ".join(whys) or "it has no recorded function: load it with record=.true."
            raise FtnPytorchError(
                "HOOK", f"{file} is not written, because {self.path} cannot be saved as recordings: {why}"
            )
        for why in whys:
            log.job_warning(f"{file} is written without a function: {why}")
        writing.write(file, tapes, self.found_state(), os.path.basename(self.path))

    def restore(self, file: str, fallback: bool = False, step: int | None = None) -> int | None:
        with self.at_work():
            place = _with_rank(file)
            is_asked_for = place.endswith(os.sep) or fallback or step is not None
            if self._has_hook(RESTORE) and not (
                is_asked_for or os.path.isdir(place) or _is_checkpoint(place) or self._is_folder_of_others(file, place)
            ):
                self._call_with_file(RESTORE, place)
                return None
            return super().restore(file, fallback, step)

    def _is_folder_of_others(self, file: str, place: str) -> bool:
        """True if this rank lacks what other ranks have as a folder, from which all restore together."""
        if self.communicator is None or "%r" not in file or os.path.exists(place):
            return False
        # Not a look for each of the others, on each of them.
        import glob
        import re

        before, *after = map(glob.escape, file.split("%r"))
        pattern = re.compile(re.escape(file).replace("%r", r"\d+"))
        found = glob.iglob(before + "".join(f"[0-9]*{piece}" for piece in after))
        return any(pattern.fullmatch(each) and os.path.isdir(each) for each in found)

    def _has_hook(self, name: str) -> bool:
        """True if the script defines the hook; HOOK if it defines only the other one of the pair."""
        other = RESTORE if name == SAVE else SAVE
        names = vars(self._module)
        if name not in names and other in names:
            text = f"{self.path} has no function {name}, but {other}: define both, or neither to have both done for it"
            raise FtnPytorchError("HOOK", text)
        return name in names

    def found_state(self) -> Any:
        """The checkpoint of what is state among the names of this script, whether it has hooks or not."""
        from ..checkpoint.script import ScriptCheckpoint

        if self._checkpoint is None:
            # not held by its checkpoint: the folder of that is unlocked as soon as the runner is let go
            itself = weakref.ref(self)
            self._checkpoint = ScriptCheckpoint(
                self.path, self._config, lambda: runner.attached() if (runner := itself()) else {}, self.communicator
            )
        self._checkpoint.use(vars(self._module), self._first)
        return self._checkpoint

    def _kept(self, wanted: str) -> Any:
        """The checkpoint of this script: by its hooks, or else of what is state among its names."""
        self.found_state()
        if self._has_hook(SAVE) and self._has_hook(RESTORE):
            save = functools.partial(self._call_with_file, SAVE)
            return self._checkpoint.hooked(save, functools.partial(self._call_with_file, RESTORE))
        return self._checkpoint

    def _call_with_file(self, name: str, file: str) -> None:
        hook = self.require(name)
        conventions.check_call(name, conventions.signature_of(hook), (file,), {})
        self._expect_done(name, "RESULT_TYPE", hook(file))

    def _expect_done(self, name: str, status: str, outcome: Any) -> None:
        """Refuse a hook whose call has run nothing of it yet."""
        if inspect.iscoroutine(outcome) or inspect.isgenerator(outcome):
            outcome.close()
            text = f"{self.path}: {name} did nothing, because it contains yield or is declared with async def"
            raise FtnPytorchError(status, f"{text}; make it a plain function")

    def networks(self) -> dict[str, Any]:
        return parameters.networks_in(vars(self._module))

    def value(self, name: str) -> Any:
        first, *rest = name.split(".")
        found = vars(self._module).get(first)
        for each in rest:
            found = getattr(found, each, None)
        return found

    def find(self, name: str) -> Callable | None:
        function = vars(self._module).get(name)
        return function if callable(function) else parameters.own_function(self, name)

    def functions(self) -> list[str]:
        return _functions_of(self._module)

    def bind(self, name: str, flags: int) -> tuple[Callable, Convention]:
        """The script's own function object, unwrapped, on the host; ``flags`` are the business of saved models."""
        function = self.require(name)
        positional = 2 if name == TRAIN else 1
        override = self._override if name in (FORWARD, TRAIN) else None
        convention = conventions.convention_of(function, positional, override)
        if name == TRAIN and self._background is not None:
            return self._background.submit, convention
        if name == FORWARD and self._compiled is not None:
            if function is not self._compiled_of:
                text = f"{self.path} gave {FORWARD} another function after it was compiled: leave out compile="
                raise FtnPytorchError("ARGUMENT", text)
            function = self._compiled
        if self.device is not None:
            from ..tensors import device

            if self._writes_results():
                moved = device.into_arrays(self._recorded(name, function), self.device)
                return moved, convention._replace(has_out=True, neglects_out=False)
            function, convention = device.on_device(function, self.device), convention._replace(has_out=False)
        function = self._recorded(name, function)
        if self.communicator is not None and self.communicator.size > 1:
            from ..ranks import failed_calls

            counted = functools.partial(failed_calls.Counted, function)
            function = self._made_once(f"{name} on ranks", name, counted)
        return function, convention

    def _writes_results(self) -> bool:
        """Whether results are copied into the arrays of the host here, see ``device.into_arrays``."""
        if self.device is None or not self.device.startswith("cuda"):
            return False
        from ..tensors import device

        return device.serves_ranks()

    def first_call(self, name: str, args: tuple, kwargs: Mapping[str, Any]) -> None:
        if self._writes_results():  # the script knows nothing of its ``out``
            kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        super().first_call(name, args, kwargs)
        conventions.check_shapes(self._shapes, self.signature(name), args, kwargs)


def _with_rank(file: str) -> str:
    from ..ranks import own_rank

    return own_rank.with_rank(file)


def _is_checkpoint(path: str) -> bool:
    """False for what ``ftn_pytorch_save`` has written by itself."""
    from ..checkpoint import file

    return file.description(path) is not None


def _functions_of(module: ModuleType) -> list[str]:
    """Public functions that the script defines, and its hooks, whatever they are made of."""

    def is_own(name: str, value: Any) -> bool:
        return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__

    return [
        name
        for name, value in vars(module).items()
        if callable(value)
        and (name.startswith("ftn_pytorch_") or (is_own(name, value) and not isinstance(value, type)))
    ]
