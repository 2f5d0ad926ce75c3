# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch plot``: the files of ``ftn_pytorch.kit.Log`` as pictures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from types import ModuleType

from ..checkpoint.file import locked
from ..errors import FtnPytorchError, missing_package
from ..system import files
from . import log_files


def add_arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "log", type=Path, help="a folder with CSV files of Log, such as those of all ranks, or one file"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="NAME",
        help="write NAME.png and NAME.svg, or this file alone if it ends in .png, .svg or .pdf (default: run, in that "
        "folder, which replaces pictures of this command only)",
    )


def run(chosen: Namespace) -> int:
    """Draw what is in the logs."""
    folder = chosen.log if chosen.log.is_dir() else chosen.log.parent
    output = folder / "run" if chosen.output is None else chosen.output
    series = log_files.read(chosen.log)
    panels = _panels()
    ending = output.suffix[1:]
    if ending in panels.FORMATS:
        places = {ending: output}
    elif ending.isalpha():
        raise FtnPytorchError("ARGUMENT", f"--output {output}: pictures are {', '.join(panels.FORMATS)}")
    else:
        # No with_suffix: what follows a point in the name belongs to it.
        places = {each: output.with_name(f"{output.name}.{each}") for each in ("png", "svg")}
    if chosen.output is None:
        _require_own(list(places.values()), panels.MARK.encode())
    pictures = panels.draw(series, "/".join(chosen.log.resolve().parts[-2:]), list(places))
    for each, file in places.items():
        with locked(str(file.absolute())), files.replaced(str(file)) as stream:
            stream.write(pictures[each])
        print(file)
    return 0


def _require_own(pictures: list[Path], mark: bytes) -> None:
    """FILE for a file of that name that this command has not drawn."""
    for file in pictures:
        if file.is_file() and mark not in file.read_bytes():
            raise FtnPytorchError(
                "FILE", f"{file} is there already, and this command has not drawn it: name the file with --output"
            )


def _panels() -> ModuleType:
    try:
        from . import panels
    except ImportError as failure:
        raise missing_package("plot", failure, "matplotlib") from failure
    return panels
