# SPDX-License-Identifier: MIT
"""Where the installed library is, for build systems and for what is compiled later."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .._version import __version__

EXTENSIONS = "FTN_PYTORCH_EXTENSIONS"
"""Variable that names a folder with the libraries that fit one torch, in place of those beside the library."""

SHIPPED = "torch-"
"""And a minor version: folders beside the library with what a wheel brings for the torch of that version."""

TORCH_VERSION = "torch_version"
"""Name under which a package that we compile records by which torch."""

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
    for place in [*prefixes(), *package.parents[2:4]]:
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


def extensions_for(torch: Torch, core: str) -> list[str]:
    """These folders, and those that a wheel brings for minor versions of torch; what does not fit a torch comes last.

    A program may be linked with the library of one environment, and run with the Python of another one. What was
    built for exactly this torch comes first, but not where it is of an earlier version of this package.
    """
    folders = extension_folders(core)
    shipped = [os.path.join(folder, f"{SHIPPED}{torch.minor}") for folder in folders if torch.minor]
    order = dict.fromkeys(filter(os.path.isdir, shipped), 1)
    for folder in folders:
        found = torch_of_plugin(folder)
        is_exact = found is not None and found[1] == torch.version and version_of_plugin(folder) == __version__
        order[folder] = 0 if is_exact else 2 if found is None or is_for(found, torch) else 3
    return sorted(order, key=order.__getitem__)


def settings_of_package(torch: Any) -> dict[str, Any]:
    """What a compiler is told so that a package records which torch it runs with. torch itself records none."""
    return {"aot_inductor.metadata": {TORCH_VERSION: torch.__version__}}


class Torch(NamedTuple):
    """A torch at hand."""

    version: str
    """Such as 2.13.0+cpu; empty where there is none."""
    minor: str
    """2.13 of a release as PyTorch's own wheels install it: a wheel of ours fits it. Empty for any other."""

    @property
    def text(self) -> str:
        """For messages: why a number of a release is none is told."""
        is_number_alone = minor_of_release(self.version) and not self.minor
        return f"torch {self.version}{', which is not from a wheel of PyTorch' if is_number_alone else ''}"


def torch_at(folder: str, version: str) -> Torch:
    """The torch of a version in the folder of its package."""
    is_of_wheel = any(map(_is_of_wheel_for_all, (folder, os.path.realpath(folder)), (version, version)))
    return Torch(version, minor_of_release(version) if is_of_wheel else "")


def _is_of_wheel_for_all(folder: str, version: str) -> bool:
    """Whether a package was installed from a wheel for Linux systems of all kinds. conda, Spack, distributions and
    builds of one's own have numbers of releases, too, but were made for the system at hand, with other libraries.
    Those of the package index lack the ``+cu130`` of the version in their names.

    The library has the same rule, in ``torch/torch_location.cpp``.
    """
    for name in (version, version.partition("+")[0]):
        with contextlib.suppress(OSError):
            described = Path(os.path.dirname(folder), f"torch-{name}.dist-info", "WHEEL").read_text()
            if any(line.startswith("Tag:") and "-manylinux" in line for line in described.splitlines()):
                return True
    return False


def is_for(built_for: tuple[str, str], torch: Torch) -> bool:
    """Whether the plug-in of ``torch_of_plugin`` may run with a torch, as far as versions tell."""
    folder, version = built_for
    return fits_torch(version, torch.version) and (bool(folder) or bool(torch.minor))


def minor_of_release(version: str) -> str:
    """``"2.13"`` of a release such as 2.13.0 or 2.13.1+cu130, empty for any other version, such as 2.13.0a0+git145a."""
    found = re.fullmatch(r"([0-9]+\.[0-9]+)\.[0-9]+(\+.*)?", version)
    return found[1] if found else ""


def fits_torch(built_for: str, here: str) -> bool:
    """Whether what was built for one torch may run with another one: releases of one minor version are alike, and what
    is no release fits itself alone. What follows a plus is the kind of build.

    The library has the same rule, in ``base/release.hpp``.
    """
    minor = minor_of_release(built_for)
    return minor == minor_of_release(here) if minor else built_for.partition("+")[0] == here.partition("+")[0]


def shipped_minors(core: str) -> list[str]:
    """Minor versions of torch that a wheel has brought libraries for, the oldest first."""
    names = (file.name for folder in extension_folders(core) for file in Path(folder).glob(f"{SHIPPED}*"))
    minors = {minor_of_release(f"{name.removeprefix(SHIPPED)}.0") for name in names} - {""}
    return sorted(minors, key=lambda minor: tuple(map(int, minor.split("."))))


def torch_of_plugin(folder: str) -> tuple[str, str] | None:
    """Folder and version of the torch for which the plug-in in a folder was built; None where there is none.

    One of a wheel has no folder: it is for all releases of the minor version."""
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
