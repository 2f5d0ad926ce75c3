# SPDX-License-Identifier: MIT
"""Where the installed library is, for build systems."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

_CONFIG_FILES = ("ftn_pytorch-config.cmake", "ftn_pytorchConfig.cmake")


def cmakedir() -> Path | None:
    """Folder of the CMake package, for ``ftn_pytorch_DIR``; None if it is not found.

    Looked for in the prefix that this package was installed into, then where CMake would look: in those that the
    environment variables ftn_pytorch_ROOT and CMAKE_PREFIX_PATH name, and in the prefix of this Python.
    """
    for prefix in prefixes():
        for folder in sorted(prefix.glob("lib*/cmake/ftn_pytorch")) + sorted(prefix.glob("lib/*/cmake/ftn_pytorch")):
            if any((folder / name).is_file() for name in _CONFIG_FILES):
                return folder
    return None


def prefixes() -> Iterator[Path]:
    """Installation prefixes, in the order they are searched."""
    package = Path(__file__).resolve().parents[1]
    # Installed with the library: PREFIX/share/ftn_pytorch/python/ftn_pytorch.
    if package.parts[-4:-1] == ("share", "ftn_pytorch", "python"):
        yield package.parents[3]
    for variable in ("ftn_pytorch_ROOT", "CMAKE_PREFIX_PATH"):
        for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(entry)
    yield Path(sys.prefix)


def library() -> str:
    """Path of the library that this package was installed or built with, empty if there is none."""
    # not resolved: a build tree has the package as a link
    package = Path(__file__).absolute().parents[1]
    for prefix in [*prefixes(), package.parents[2], package.parents[3]]:
        for file in (*prefix.glob("lib*/libftn_pytorch.so"), *prefix.glob("lib/*/libftn_pytorch.so")):
            return str(file)
    return ""
