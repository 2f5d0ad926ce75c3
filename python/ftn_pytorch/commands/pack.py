# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch pack``: the bytecode of all modules that a script imports, in one file.

Programs read it where FTN_PYTORCH_PACK names it. It holds no code of the script, nor of files beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from ..errors import FtnPytorchError
from ..script import conventions, loading
from ..script.conventions import FORWARD, TRAIN
from ..system import files, pack
from .c_interface import Array, Library, Module
from .check import module_of, named_targets
from .example_inputs import InputSpec, add_config, add_dtype, add_inputs, add_target, config_of, named_specs
from .packed_modules import PackedModules

_ANY_SIZE = 8
"""For sizes of ``ftn_pytorch_shapes`` that have a name or none."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("script", help="a Python script, or a saved model that Python runs")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: the stem of the script, and .pack")
    add_inputs(parser, default="what ftn_pytorch_shapes of the script declares")
    add_target(parser)
    add_config(parser)
    add_dtype(parser)
    parser.add_argument(
        "--background", action="store_true", help="for programs that load the script with background=.true."
    )


def run(chosen: argparse.Namespace) -> int:
    """Run the script, and write the file."""
    script = loading.find(chosen.script)
    output = _output(chosen, script)
    folders = _search_path()
    with contextlib.redirect_stdout(sys.stderr):  # what the script prints
        called = _run(script, chosen)
    packed = PackedModules(folders)
    with files.replaced(output) as stream:
        size = packed.write(stream, script)
    print(f"{output}: {len(packed.modules):,} modules, {size:,} bytes, of a load and {called}")
    print(f"export {pack.VARIABLE}={output}")
    return 0


def _output(chosen: argparse.Namespace, script: str) -> str:
    """The file to write. FILE if it cannot be there, or must not be replaced."""
    output = os.path.abspath(chosen.output or f"{os.path.splitext(os.path.basename(script))[0]}.pack")
    files.require_place(output)
    if chosen.output is None and os.path.lexists(output):
        raise FtnPytorchError("FILE", f"{output} is there already: --output names a file that may be replaced")
    return output


def _search_path() -> list[str]:
    """Folders that programs search, too: not that of the shell, which ``python -m`` puts first."""
    own = [] if getattr(sys.flags, "safe_path", False) or sys.path[:1] != [os.getcwd()] else sys.path[:1]
    return [folder for folder in sys.path if os.path.isabs(folder) and folder not in own]


def _run(script: str, chosen: argparse.Namespace) -> str:
    """Load the script, and call its hooks as a program does: what was called."""
    options: dict[str, Any] = {"dtype": chosen.dtype}
    if chosen.background:
        options["background"] = True
    module = Library().load(script, False, options, config_of(chosen))
    names = [name for name in (FORWARD, TRAIN) if module.has(name)]
    source = module_of(script)
    specs = named_specs(chosen.input or [], "--input") or _declared(source, names)
    if not specs:
        return "no call: give --input, or declare ftn_pytorch_shapes, for what the first call imports"
    given = [(spec.name, spec.array()) for spec in specs]
    aims = [(spec.name, spec.array()) for spec in named_specs(chosen.target, "--target")]
    if names == [TRAIN] and not chosen.input:
        given, aims = given[:-1], given[-1:]
    return " and ".join(_called(module, source, names, given, aims)) or "no call"


def _called(module: Module, source: Any, names: Iterable[str], given: list[Array], aims: list[Array]) -> Iterator[str]:
    """Make one call of each; yields what was called."""
    if FORWARD in names:
        results = module.forward(given)
        aims = aims or [("", each.zeros()) for each in results if each.is_array]
        yield FORWARD
    if TRAIN in names and module.backend == "script" and aims:
        module.train_call(given, named_targets(source, given, aims))()
        yield TRAIN


def _declared(script: ModuleType | None, names: Iterable[str]) -> list[InputSpec]:
    """Arrays for the first hook all of whose parameters have a shape in ``ftn_pytorch_shapes``."""
    shapes = {} if script is None else vars(script).get(conventions.SHAPES, {})
    for name in names if shapes else ():
        signature = conventions.signature_of(getattr(script, name))
        if signature is None:
            continue
        needed = [each.name for each in signature.parameters.values() if each.default is each.empty]
        if needed and all(isinstance(shapes.get(each), tuple) for each in needed):
            sizes = [[size if isinstance(size, int) else _ANY_SIZE for size in shapes[each]] for each in needed]
            return [InputSpec(tuple(size), "float32", name) for name, size in zip(needed, sizes)]
    return []
