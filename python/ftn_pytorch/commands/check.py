# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch check``: what it does depends on what it is given, see ``_FORMS``."""

from __future__ import annotations

import argparse
import os
from typing import Any, NamedTuple

from ..errors import FtnPytorchError
from . import check_calls, check_contents, check_hooks, check_times
from .example_inputs import add_call


class _Form(NamedTuple):
    module: Any
    """Its ``run`` gives the exit code."""
    of: str
    """What it takes, in words."""
    options: frozenset[str]


_HOOKS = frozenset(("input", "target", "config", "dtype", "json"))
# The first one that fits is taken, see ``_form``. A new form is a module and a row.
_FORMS = {
    "calls": _Form(check_calls, "a folder of recorded calls", frozenset(("call", "alone", "pdb", "script"))),
    "times": _Form(check_times, "--time", _HOOKS | {"time", "network", "aot"}),
    "contents": _Form(check_contents, "a saved recording without --input", frozenset(("operators", "json"))),
    "hooks": _Form(check_hooks, "a script or a saved model", _HOOKS | {"output"}),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", help="a Python script, a saved model, or a folder that FTN_PYTORCH_RECORD named")
    add_call(parser)
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        metavar="[NAME=]SHAPE[:DTYPE]",
        help="an array that the program passes for a result of ftn_pytorch_forward; default: any result is taken",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    times = parser.add_argument_group("what the calls cost on each path")
    times.add_argument("--time", action="store_true", help="measure, in place of calling each hook")
    times.add_argument(
        "--network", metavar="NAME", help="the network of the script to measure in the formats of saved models"
    )
    times.add_argument("--aot", action="store_true", help="measure a package of AOTInductor, too; it takes a minute")
    contents = parser.add_argument_group("a saved recording without --input: what it holds")
    contents.add_argument("--operators", action="store_true", help="list the operators, with how often each is called")
    calls = parser.add_argument_group("a folder of recorded calls, of one rank: make them again, and compare")
    calls.add_argument("--call", type=int, metavar="N", help="compare this call only; those before it run, too")
    calls.add_argument("--alone", action="store_true", help="with --call: do not run the calls before it")
    calls.add_argument(
        "--pdb", action="store_true", help="stop in the debugger at the first line of each compared call"
    )
    calls.add_argument("--script", metavar="FILE", help="run this file in place of the recorded one")


def run(chosen: argparse.Namespace) -> int:
    """Check: 0 if all is well, 1 if something is wrong. ARGUMENT for an option of another form."""
    form = _FORMS[_form(chosen)]
    every = frozenset.union(*(each.options for each in _FORMS.values()))
    for name in sorted(every - form.options):
        if _is_given(getattr(chosen, name)):
            places = " or ".join(each.of for each in _FORMS.values() if name in each.options)
            raise FtnPytorchError("ARGUMENT", f"--{name} is for {places}, and this is {form.of}")
    return form.module.run(chosen)


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value not in ([], "keep")


def _form(chosen: argparse.Namespace) -> str:
    if os.path.isdir(chosen.file):
        return "calls"
    if chosen.time:
        return "times"
    if not chosen.input and check_contents.is_meant(chosen.file):
        return "contents"
    return "hooks"
