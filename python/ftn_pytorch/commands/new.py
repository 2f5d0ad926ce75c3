# SPDX-License-Identifier: MIT
"""``python -m ftn_pytorch new``: a project of Fortran and Python that trains a closure, to begin one's own with."""

from __future__ import annotations

import keyword
import os
import re
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..errors import FtnPytorchError
from ..script import shadowing

# A project that works as it is, with this word where its name comes.
_TEMPLATE = Path(__file__).parent / "project"
_WORD = "project_name"
# What CMake makes in a build folder under such names
_OF_CMAKE = {
    "all",
    "clean",
    "cmakefiles",
    "edit_cache",
    "help",
    "install",
    "package",
    "rebuild_cache",
    "test",
    "testing",
}


def add_arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "name", type=Path, help="folder to write; its name becomes that of the program and of the Python script"
    )


def run(chosen: Namespace) -> int:
    """Write the project."""
    folder = Path(os.path.abspath(chosen.name))
    check_name(folder.name)
    write(folder)
    print(f"{folder}: README.md says how to build, test and run it")
    return 0


def check_name(name: str) -> None:
    """ARGUMENT if it cannot be the name of a Fortran program, a Python module and a target of CMake."""
    used = {
        word.lower() for file in (_TEMPLATE / "src").iterdir() for word in re.findall(r"[A-Za-z]\w*", file.read_text())
    } - {_WORD}
    origin = shadowing.installed(name, ["", os.getcwd()]) if name.isidentifier() else None
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", name):
        why = "it must be a letter and up to 62 letters, digits and underscores, as for a Fortran program"
    elif keyword.iskeyword(name):
        why = "it is a keyword of Python"
    elif origin is not None:
        why = f"a script {name}.py would hide the module {name!r} of Python ({origin})"
    elif name.lower() in used or re.match(r"(torch|ftn_pytorch|fpt)(_|$)", name.lower()):
        why = "the program or the library uses this name for something else"
    elif name.lower() in _OF_CMAKE:
        why = "CMake makes something else of this name"
    else:
        return
    raise FtnPytorchError("ARGUMENT", f"{name!r} cannot be the name of a project: {why}")


def write(folder: Path) -> None:
    """The project, completely or not at all. FILE if the folder exists and is not empty, or cannot be written."""
    if folder.is_dir() and any(folder.iterdir()):
        raise FtnPytorchError("FILE", f"{folder} exists and is not empty: choose another name, or remove it")
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as made:
            project = Path(made) / folder.name
            for file in _TEMPLATE.rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    _write_file(file, project)
            if folder.is_dir():
                # It stays the folder that it is: somebody may be in it.
                for child in project.iterdir():
                    os.replace(child, folder / child.name)
            else:
                os.replace(project, folder)
    except OSError as failure:
        raise FtnPytorchError("FILE", f"{folder} cannot be written: {failure.strerror}") from failure


def _write_file(file: Path, project: Path) -> None:
    place = project / str(file.relative_to(_TEMPLATE)).replace(_WORD, project.name)
    if file.name == "gitignore":
        place = place.with_name(".gitignore")
    place.parent.mkdir(parents=True, exist_ok=True)
    # The licence of a project is for its owner to choose.
    lines = [
        line for line in file.read_text(encoding="utf-8").splitlines(True) if "SPDX-License-Identifier" not in line
    ]
    place.write_text("".join(lines).replace(_WORD, project.name), encoding="utf-8")
