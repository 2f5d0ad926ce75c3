# SPDX-License-Identifier: MIT
"""How commands open a file and call its hooks: through the library, as a Fortran program does, or in Python alone."""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import FtnPytorchError
from ..opening import open_runner
from ..runners.models import formats
from ..script import conventions, loading
from ..script.conventions import FORWARD, TRAIN, plain
from .c_interface import Array, Library, Module, Result
from .example_inputs import InputSpec, config_in, config_of, named_specs

NO_TARGETS = "there are no results to take as targets; name some with --target"
NO_INPUTS = "give --input, or declare ftn_pytorch_shapes"
_ANY_SIZE = 8
"""For sizes of ``ftn_pytorch_shapes`` that have a name or none."""


@dataclass(frozen=True)
class Opened:
    """A script or a saved model in this process, with the shapes of what a program would pass."""

    chosen: argparse.Namespace
    library: Library
    path: str
    is_recording: bool
    """Whether it is a saved recording, which trains by itself. Other saved models need an optimizer of the program."""
    module: Module
    inputs: Sequence[InputSpec] = ()
    outputs: Sequence[InputSpec] = ()
    targets: Sequence[InputSpec] = ()

    def again(self, is_model: bool, **options: Any) -> Opened:
        """The file loaded once more, with other options of ``load``."""
        given = config_of(self.chosen)
        return replace(
            self, module=self.library.load(self.path, is_model, {"dtype": self.chosen.dtype, **options}, given)
        )

    @property
    def script(self) -> Any:
        """The script as Python has imported it, None for a saved model."""
        for module in list(sys.modules.values()):
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.origin == self.path:
                return module
        return None

    @property
    def hooks(self) -> list[str]:
        """Those that can be called."""
        is_trained = self.module.backend == "script" or self.is_recording
        return [name for name in ((FORWARD, TRAIN) if is_trained else (FORWARD,)) if self.module.has(name)]

    def given(self, is_reversed: bool = False) -> list[Array]:
        """Inputs; ``is_reversed``: with their axes in the other order. ARGUMENT where there are none."""
        if not self.inputs:
            raise FtnPytorchError("ARGUMENT", NO_INPUTS)
        return _arrays(self.inputs, is_reversed)

    def results(self, is_reversed: bool = False) -> list[Array]:
        """Arrays of ``--output``."""
        return _arrays(self.outputs, is_reversed)

    def aims(self, results: Iterable[Result], is_reversed: bool = False) -> list[Array]:
        """Targets of ``--target``, else some that are like the results."""
        like = [("", InputSpec(each.shape, each.dtype).array()) for each in results if each.is_array]
        return _arrays(self.targets, is_reversed) or like

    def forward(
        self, given: Sequence[Array], outputs: Sequence[Array] = ()
    ) -> tuple[list[Result], list[Any] | None, Callable[[], Any]]:
        """Call ``ftn_pytorch_forward``: its results, the arrays that received them, and a function that calls it again.

        Results are delivered into ``outputs``, or into arrays that are made for them. Where one of them is no array,
        nothing is delivered, and there are no arrays.
        """
        self._signature(FORWARD, given)
        results = [Result(name, value.shape, value.dtype.name) for name, value in outputs]
        if not outputs:
            results = self.module.forward(given)
            if not all(each.is_array for each in results):
                return results, None, functools.partial(self.module.forward, given)
            outputs = [(each.name, each.zeros()) for each in results]
        call = self.module.forward_call(given, outputs)
        call()
        return results, [value for _, value in outputs], call

    def train(self, given: Sequence[Array], aims: Sequence[Array]) -> Callable[[], tuple[bool, float]]:
        """A function that calls ``ftn_pytorch_train``; its result: finished, loss."""
        return self.module.train_call(given, self.named(given, aims))

    def named(self, given: Sequence[Array], aims: Sequence[Array]) -> list[Array]:
        """Targets by name where the inputs have names: one without goes to a parameter that the inputs leave."""
        signature = self._signature(TRAIN, [*given, *aims])
        if signature is None or not any(name for name, _ in given):
            return list(aims)
        taken = {name for name, _ in [*given, *aims]}
        left = iter([name for name in signature.parameters if name not in taken])
        return [(name or next(left, ""), value) for name, value in aims]

    def _signature(self, function: str, arguments: Iterable[Array]) -> inspect.Signature | None:
        """That of a function of the script; SIGNATURE if it lacks a parameter that is named."""
        signature = None if self.script is None else conventions.signature_of(getattr(self.script, function))
        takes_all = signature is None or any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
        for name, _ in arguments:
            if name and signature is not None and not takes_all and name not in signature.parameters:
                text = f"{function}{plain(signature)} has no parameter {name!r}"
                raise FtnPytorchError("SIGNATURE", f"{text}: leave the names out to pass arguments by position")
        return signature


@contextlib.contextmanager
def opened(
    chosen: argparse.Namespace,
    *,
    outputs: Sequence[str] = (),
    is_model: bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> Iterator[Opened]:
    """Load the file of a command, which ends with the body; there standard output is what the command finds alone.

    outputs: ``--output`` of ``check``. is_model: load it as ``torch_module`` of a program does; by default that is so
    for saved recordings, since such a program has no Python. options: of ``load``, beside ``--dtype``. Errors: those of
    ``fpt_module_load``, and ARGUMENT for what are no shapes.
    """
    texts = {"--input": chosen.input, "--output": outputs, "--target": chosen.target}
    specs = [named_specs(given, option) for option, given in texts.items()]
    path = loading.find(chosen.file)
    is_recording = formats.identify(path) == formats.RECORDING
    library = Library()
    with contextlib.redirect_stdout(sys.stderr):  # what the script prints
        is_model = is_recording if is_model is None else is_model
        module = library.load(path, is_model, {"dtype": chosen.dtype, **(options or {})}, config_of(chosen))
        try:
            found = Opened(chosen, library, path, is_recording, module, *specs)
            yield found if found.inputs else _with_declared(found)
        finally:
            module.free()


def opened_in_python(file: str, options: dict[str, Any], chosen: argparse.Namespace) -> Any:
    """The runner of a script for commands that look into it, set up with ``--config`` and that of ``--checkpoint``.

    What it keeps is that of the checkpoint then. Errors: what loading and restoring fail with.
    """
    kept = {} if chosen.checkpoint is None else config_in(chosen.checkpoint)
    runner: Any = open_runner(loading.find(file), options, {**kept, **config_of(chosen)})
    if chosen.checkpoint is not None:
        runner.restore(chosen.checkpoint)
    return runner


def _arrays(specs: Iterable[InputSpec], is_reversed: bool) -> list[Array]:
    return [(spec.name, spec.array(is_reversed)) for spec in specs]


def _with_declared(found: Opened) -> Opened:
    """Arrays for the first hook all of whose parameters have a shape in ``ftn_pytorch_shapes``."""
    shapes = {} if found.script is None else vars(found.script).get(conventions.SHAPES, {})
    for hook in found.hooks if shapes else ():
        signature = conventions.signature_of(getattr(found.script, hook))
        needed = (
            []
            if signature is None
            else [name for name, each in signature.parameters.items() if each.default is each.empty]
        )
        if not needed or not all(isinstance(shapes.get(name), tuple) for name in needed):
            continue
        sizes = {name: tuple(size if isinstance(size, int) else _ANY_SIZE for size in shapes[name]) for name in needed}
        specs = [InputSpec(size, "float32", name) for name, size in sizes.items()]
        if hook == FORWARD:
            return replace(found, inputs=specs)
        return replace(found, inputs=specs[:-1], targets=found.targets or specs[-1:])
    return found
