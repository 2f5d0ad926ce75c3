# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch pack``: the bytecode of all modules that a script imports, in one file.

Programs read it where FTN_PYTORCH_PACK names it. It holds no code of the script, nor of files beside it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from ..checkpoint import file
from ..script import loading
from ..script.conventions import FORWARD, TRAIN
from ..system import files, pack
from .c_interface import Result
from .example_inputs import add_call
from .opened import Opened, opened
from .packed_modules import PackedModules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", metavar="script", help="a Python script, or a saved model that Python runs")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: the stem of the script, and .pack")
    add_call(parser)
    parser.add_argument(
        "--background", action="store_true", help="for programs that load the script with background=.true."
    )


def run(chosen: argparse.Namespace) -> int:
    """Run the script, and write the file."""
    script = loading.find(chosen.file)
    output = files.to_write(chosen.output, script, "pack")
    folders = _search_path()
    options = {"background": True} if chosen.background else {}
    with opened(chosen, is_model=False, options=options) as one:
        called = _called(one)
    packed = PackedModules(folders)
    with file.locked(output), files.replaced(output) as stream:
        size = packed.write(stream, script)
    print(f"{output}: {len(packed.modules):,} modules, {size:,} bytes, of a load and {called}")
    print(f"export {pack.VARIABLE}={shlex.quote(str(output))}")
    return 0


def _search_path() -> list[str]:
    """Folders that programs search, too: not that of the shell, which ``python -m`` puts first."""
    own = [] if getattr(sys.flags, "safe_path", False) or sys.path[:1] != [os.getcwd()] else sys.path[:1]
    return [folder for folder in sys.path if os.path.isabs(folder) and folder not in own]


def _called(one: Opened) -> str:
    """One call of each hook, as a program makes them: what was called."""
    if not one.inputs:
        return "no call: give --input, or declare ftn_pytorch_shapes, for what the first call imports"
    given, called = one.given(), []
    results: list[Result] = []
    if FORWARD in one.hooks:
        results, _, _ = one.forward(given)
        called.append(FORWARD)
    if TRAIN in one.hooks and (aims := one.aims(results)):
        one.train(given, aims)()
        called.append(TRAIN)
    return " and ".join(called) or "no call"
