# SPDX-License-Identifier: MIT
"""Files beside scripts that take the name of an installed module: which hides which."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

NEEDED = ("torch", "numpy", "onnxruntime")
"""What this package imports when it is needed."""


def installed(name: str, without: Iterable[str]) -> str | None:
    """Where an import finds a module if some folders are not searched: its file or "built-in"; None if nowhere.

    Whether the name is imported already plays no part. A mere folder of the name is no module, since a file comes
    before it.
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
    for name in names:
        file = file_of(name, folder)
        origin = installed(name, without) if file else None
        if file and origin:
            found[name] = f"{file} hides the module {name!r} of Python ({origin}) from every import: rename the file"
    return found
