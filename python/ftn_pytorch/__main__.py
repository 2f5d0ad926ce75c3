# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch``: where things are, which version, what is found, exporting networks, measuring."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import __version__, config, export
from .bench import command as bench
from .diagnose import diagnose


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit code, 0 if everything is well."""
    parser = argparse.ArgumentParser(
        prog="python -m ftn_pytorch", description="Fortran programs that run PyTorch scripts."
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--version", action="version", version=__version__)
    choice.add_argument("--cmakedir", action="store_true", help="print the folder for CMake's ftn_pytorch_DIR")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("diagnose", help="say what is installed and found")
    help_export = "write a network of a script to a file that Fortran loads, and check it"
    export.add_arguments(commands.add_parser("export", help=help_export, description=help_export))
    help_bench = "measure all paths from Fortran to a network (needs the sources, and a build)"
    bench.add_arguments(commands.add_parser("bench", help=help_bench, description=help_bench))
    chosen = parser.parse_args(arguments)
    if chosen.cmakedir and chosen.command is None:
        return _print_cmakedir()
    if chosen.command in ("bench", "export") and not chosen.cmakedir:
        return {"bench": bench, "export": export}[chosen.command].run(chosen)
    if chosen.command != "diagnose" or chosen.cmakedir:
        parser.error("give one of --version, --cmakedir, diagnose, export, bench")
    fine, text = diagnose({})
    print(text)
    return 0 if fine else 1


def _print_cmakedir() -> int:
    folder = config.cmakedir()
    if folder is not None:
        print(folder)
        return 0
    searched = "\n".join(f"  {prefix}" for prefix in config.prefixes())
    print(
        "The CMake package of ftn_pytorch was not found. Install the library with 'cmake --install', and name its "
        f"prefix in CMAKE_PREFIX_PATH. Searched were:\n{searched}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
