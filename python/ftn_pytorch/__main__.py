# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch``: where things are, what is found, and the commands of other modules."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ._version import __version__
from .commands import build_direct, check, export, lint, modules, new, pack, plot, self_test
from .diagnosis import doctor, program_libraries
from .errors import FtnPytorchError, is_of_memory
from .system import installation, trial

# Each has add_arguments and run.
_COMMANDS = {
    "check": (
        check,
        "call the functions of a script as a Fortran program would, and report results, errors and times; measure each "
        "path, list what a saved recording holds, or make recorded calls again, and compare",
    ),
    "export": (export, "write a network of a script to a file that Fortran loads, and check it"),
    "build-direct": (build_direct, "compile what runs saved models and recorded steps, for the torch at hand"),
    "modules": (modules, "list the compiled Fortran modules that builds of projects have kept, or remove them"),
    "pack": (pack, "write the bytecode of all modules that a script imports to one file, for starts of many ranks"),
    "lint": (
        lint,
        "find arguments of torch_in and its like in Fortran sources that compilers accept and that go wrong",
    ),
    "plot": (plot, "draw what ftn_pytorch.kit.Log has written: losses, learning rate, time, drift"),
    "new": (new, "write a project of Fortran and Python that trains a closure, to begin with"),
}

# What forms of check were called. They are known until the next minor version.
_FORMER = {"bench": "check --time", "describe": "check", "replay": "check"}

# What build systems ask for.
_PLACES = {
    "prefix": (installation.prefix, "for CMAKE_PREFIX_PATH"),
    "cmakedir": (installation.cmakedir, "for CMake's ftn_pytorch_DIR"),
    "pkgconfigdir": (installation.pkgconfigdir, "for PKG_CONFIG_PATH"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit code.

    0: everything is well. 1: the command was done, and has found what is wrong. 2: it cannot be done.
    """
    parser = argparse.ArgumentParser(
        prog="ftn_pytorch", description="Fortran programs that run PyTorch scripts."
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--version", action="version", version=__version__)
    for name, (_, text) in _PLACES.items():
        choice.add_argument(
            f"--{name}", dest="place", action="store_const", const=name, help=f"print the folder {text}"
        )
    commands = parser.add_subparsers(dest="command", metavar="command")
    help_doctor = "list what is installed and found, with a verdict and a cure for each"
    options = commands.add_parser("doctor", aliases=["diagnose"], help=help_doctor, description=help_doctor)
    options.add_argument("--json", action="store_true", help="for programs")
    options.add_argument("--test", action="store_true", help="run what programs do, and end with PASSED or FAILED")
    text = "a program: say what its libraries do to torch, without running it"
    options.add_argument("program", nargs="?", help=text)
    for name, (module, text) in _COMMANDS.items():
        module.add_arguments(commands.add_parser(name, help=text, description=text))
    for name, words in _FORMER.items():
        former = commands.add_parser(name, description=f"the former name of {words}")
        check.add_arguments(former)
        former.set_defaults(time="--time" in words)
    chosen = parser.parse_args(arguments)
    if chosen.place and chosen.command is None:
        return _print_place(*_PLACES[chosen.place])
    if chosen.command is None or chosen.place:
        parser.error(f"give one of --version, --{', --'.join(_PLACES)}, doctor, {', '.join(_COMMANDS)}")
    if chosen.command in _FORMER:
        print(
            f"note: {chosen.command} is {_FORMER[chosen.command]} now, and the former name goes with the next minor "
            "version",
            file=sys.stderr,
        )
        chosen.command = "check"
    if chosen.command not in _COMMANDS and chosen.test and (chosen.json or chosen.program):
        parser.error("doctor --test takes neither --json nor a program")
    try:
        if chosen.command not in _COMMANDS:
            return _diagnose(chosen)
        # What a script writes belongs to its runs, which no command changes.
        with trial.begun():
            return _COMMANDS[chosen.command][0].run(chosen)
    except FtnPytorchError as failure:
        print(f"{chosen.command}: FTN_PYTORCH_ERR_{failure.status}: {failure.text}", file=sys.stderr)
        return 2
    except Exception as failure:
        if not is_of_memory(failure):
            raise
        print(f"{chosen.command}: FTN_PYTORCH_ERR_MEMORY: {failure}", file=sys.stderr)
        return 2


def _diagnose(chosen: argparse.Namespace) -> int:
    if chosen.test:
        return self_test.run()
    found = doctor.findings({})
    if chosen.program:
        found += program_libraries.of_program(chosen.program)
    doctor.show(found, chosen.json)
    return 1 if any(finding.verdict == doctor.WRONG for finding in found) else 0


def _print_place(find: Callable[[], Path | None], _: str) -> int:
    folder = find()
    if folder is not None:
        print(folder)
        return 0
    searched = "\n".join(f"  {prefix}" for prefix in installation.prefixes())
    print(
        "The CMake package of ftn_pytorch was not found. Install the library with 'cmake --install', and name its "
        f"prefix in CMAKE_PREFIX_PATH. Searched were:\n{searched}",
        file=sys.stderr,
    )
    return 1


def command() -> int:
    """``main`` for the shell: its reader may go away before the end, as that of a pipe to head does."""
    try:
        try:
            return main()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(command())
