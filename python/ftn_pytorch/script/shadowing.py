# SPDX-License-Identifier: MIT
"""Files beside scripts that take the name of an installed module: which hides which."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

NEEDED = ("torch", "numpy", "onnxruntime")
"""What this package imports when it is needed."""

RESERVED = (
    *(
        "argparse",
        "array",
        "ast",
        "base64",
        "binascii",
        "bisect",
        "bz2",
        "calendar",
        "concurrent",
        "copy",
        "csv",
        "ctypes",
        "glob",
    ),
    *("dataclasses", "datetime", "decimal", "difflib", "dis", "email", "fcntl", "fnmatch", "fractions", "gettext"),
    *("hashlib", "heapq", "inspect", "ipaddress", "json", "linecache", "locale", "logging", "lzma", "math"),
    *("multiprocessing", "ntpath", "numbers", "opcode", "pathlib", "pickle", "pickletools", "platform", "quopri"),
    *("random", "select", "selectors", "shlex", "shutil", "signal", "socket", "string", "struct", "subprocess"),
    *("sysconfig", "tempfile", "textwrap", "token", "tokenize", "traceback", "urllib", "uuid", "zipfile", "zlib"),
)
"""Modules of Python that this package imports where it first needs them, long after a script may have been loaded."""


class _Reserved:
    """Finds ``RESERVED`` where they were before the first script, whatever scripts do to ``sys.path``."""

    def __init__(self) -> None:
        self._searched = list(sys.path)

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, self._searched) if path is None and name in RESERVED else None


def reserve() -> None:
    """Let no file of a script take the place of ``RESERVED``. Called before the folder of a script is searched."""
    if not any(isinstance(finder, _Reserved) for finder in sys.meta_path):
        # Behind a pack, which knows what comes first on sys.path.
        place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else 0
        sys.meta_path.insert(place, _Reserved())


def _stems(folder: str) -> set[str]:
    """What may be modules in a folder. One question for all of them, since each costs an operation."""
    try:
        return {entry.removesuffix(".py") for entry in os.listdir(folder)}
    except OSError:
        return set()


def installed(name: str, without: Iterable[str]) -> str | None:
    """Where an import finds a module if some folders are not searched: its file or "built-in"; None if nowhere.

    Whether the name is imported already plays no part. A folder without __init__.py is no module, since a file
    comes before it.
    """
    hidden = set(without)
    searched = [folder for folder in sys.path if folder not in hidden]
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec = None if find is None else find(name, searched)
        except (ImportError, ValueError):
            continue
        if spec is not None:
            return spec.origin
    return None


def file_of(name: str, folder: str) -> str | None:
    """The Python source in a folder that an import of a top-level name would run."""
    for file in (os.path.join(folder, name, "__init__.py"), os.path.join(folder, f"{name}.py")):
        if os.path.isfile(file):
            return file
    return None


def explain(names: Iterable[str], folder: str, without: Iterable[str]) -> dict[str, str]:
    """For those of the names for which a file of the folder is found in place of a module that is installed: a text."""
    found = {}
    without = {*without, folder}
    there = _stems(folder)
    for name in (name for name in names if name in there):
        file = file_of(name, folder)
        origin = installed(name, without) if file else None
        if file and origin:
            found[name] = f"{file} hides the module {name!r} of Python ({origin}) from every import: rename the file"
    return found
