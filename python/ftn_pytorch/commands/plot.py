# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch plot``: the files of ``ftn_pytorch.kit.Log`` as pictures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from types import ModuleType

from ..errors import missing_package
from ..host import files
from . import logs


def add_arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "log", type=Path, help="a folder with CSV files of Log, such as those of all ranks, or one file"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="NAME",
        help="write NAME.png and NAME.svg; NAME may end in either (default: run, in that folder)",
    )


def run(chosen: Namespace) -> int:
    """Draw what is in the logs."""
    folder = chosen.log if chosen.log.is_dir() else chosen.log.parent
    output = folder / "run" if chosen.output is None else chosen.output
    if output.suffix in (".png", ".svg"):
        output = output.with_suffix("")
    series = logs.read(chosen.log)
    _write(_panels().draw(series, "/".join(chosen.log.resolve().parts[-2:])), output)
    return 0


def _panels() -> ModuleType:
    try:
        from . import panels
    except ImportError as failure:
        raise missing_package("plot", failure, "matplotlib") from failure
    return panels


def _write(pictures: dict[str, bytes], output: Path) -> None:
    """Write each picture completely or not at all."""
    for ending, content in pictures.items():
        # No with_suffix: what follows a point in the name belongs to it.
        file = output.with_name(f"{output.name}.{ending}")
        with files.replaced(str(file)) as stream:
            stream.write(content)
        print(file)
