# SPDX-License-Identifier: MIT
"""Where the installed library is, for build systems and for what is compiled later."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

EXTENSIONS = "FTN_PYTORCH_EXTENSIONS"
"""Variable that names a folder with the libraries that fit one torch, in place of those beside the library."""

_CONFIG_FILES = ("ftn_pytorch-config.cmake", "ftn_pytorchConfig.cmake")


def _package() -> Path:
    # not resolved first: package managers link the files of an environment to a store
    found = Path(__file__).absolute().parents[1]
    return found if (found / "lib" / "libftn_pytorch.so").is_file() else found.resolve()


def is_wheel() -> bool:
    """Whether pip has installed this package together with the library."""
    return (_package() / "lib" / "libftn_pytorch.so").is_file()


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


def prefix() -> Path | None:
    """The prefix with the CMake package, for ``CMAKE_PREFIX_PATH``; None if it is not found."""
    folder = cmakedir()
    if folder is None:
        return None
    return next(place for place in prefixes() if folder.is_relative_to(place))


def pkgconfigdir() -> Path | None:
    """Folder of the file for pkg-config, for ``PKG_CONFIG_PATH``; None if it is not found."""
    folder = cmakedir()
    return folder.parents[1] / "pkgconfig" if folder else None


def prefixes() -> Iterator[Path]:
    """Installation prefixes, in the order they are searched."""
    package = _package()
    if is_wheel():
        yield package
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
    for place in [*prefixes(), package.parents[2], package.parents[3]]:
        for file in (*place.glob("lib*/libftn_pytorch.so"), *place.glob("lib/*/libftn_pytorch.so")):
            return str(file)
    return ""


def extension_folders(core: str) -> list[str]:
    """Folders in which libraries lie that fit one torch, in the order they are searched: that of the variable alone, or
    that of the library that the program has linked, and that of this package."""
    named = os.environ.get(EXTENSIONS)
    if named:
        return [named]
    return list(dict.fromkeys(os.path.dirname(file) for file in (core, library()) if file))


def extensions_for(torch_version: str, core: str) -> list[str]:
    """The same folders, those for another torch behind the others: a program may be linked with the library of one
    environment, and run with the Python of another one."""
    made = {folder: torch_of_plugin(folder) for folder in extension_folders(core)}
    return sorted(made, key=lambda folder: (found := made[folder]) is not None and found[1] != torch_version)


def torch_of_plugin(folder: str) -> tuple[str, str] | None:
    """Folder and version of the torch for which the plug-in in a folder was built; None where there is none."""
    lines = _described(folder)
    return (lines[0], lines[1]) if len(lines) >= 2 else None


def version_of_plugin(folder: str) -> str:
    """The version of this package that the plug-in in a folder belongs to; empty for 0.2.0, which did not say so."""
    return "".join(_described(folder)[2:3])


def _described(folder: str) -> list[str]:
    try:
        return Path(folder, "libftn_pytorch_direct.torch").read_text().splitlines()
    except OSError:
        return []


def pythons(core: str) -> list[str]:
    """The versions of Python for which there is a half of the library beside its file: ["3.11"]."""
    files = Path(core).parent.glob("libftn_pytorch_python3.*.so")
    return sorted(re.sub(r".*_python([\d.]+)\.so", r"\1", file.name) for file in files)


def source() -> Path | None:
    """Folder with the sources of what is linked with libtorch, which a wheel brings along; None elsewhere."""
    folder = _package() / "share" / "ftn_pytorch" / "source"
    return folder if (folder / "CMakeLists.txt").is_file() else None


def direct_cure() -> str:
    """How to get what is linked with libtorch for the torch of this Python."""
    if is_wheel():
        return f"run {sys.executable} -m ftn_pytorch build-direct"
    return "configure the library with -DFTN_PYTORCH_DIRECT=ON and this Python to have it"
